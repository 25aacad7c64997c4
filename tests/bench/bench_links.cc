// What a link can do without uib's transport: bare frames through a frame port, and a UDP ping-pong that
// spins.
//
//   bench_links frames INTERFACE-A INTERFACE-B DRIVER BYTES
//                                         both ends of a veth pair in this namespace: frames a second one
//                                         way, of 64 bytes, of this many and of the interface's MTU, and half
//                                         a round trip
//   bench_links udp-server PORT           answers every datagram until killed
//   bench_links udp-client ADDRESS PORT   half a round trip of 20000 exchanges
//
// Prints one "name value unit" a line.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "net/port/port_module.h"

namespace {

using Clock = std::chrono::steady_clock;
using uib::net::FramePort;

constexpr std::uint16_t kType = 0x88B5;
constexpr std::size_t kHeader = 14;
constexpr int kExchanges = 20000;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

std::unique_ptr<FramePort> open_port(const char* interface, const char* driver) {
    uib::net::FramePortOptions options;
    options.name = interface;
    options.driver = driver;
    options.interface = interface;
    options.ether_type = kType;
    return uib::net::open_frame_port(options);
}

bool put(FramePort& from, const uib::net::MacAddress& to, std::size_t bytes) {
    const std::span<std::byte> frame = from.allocate(bytes);
    if (frame.empty()) return false;
    const uib::net::MacAddress mac = from.mac();
    std::memcpy(frame.data(), to.data(), to.size());
    std::memcpy(frame.data() + to.size(), mac.data(), mac.size());
    frame[kHeader - 2] = std::byte{kType >> 8};
    frame[kHeader - 1] = std::byte{kType & 0xFF};
    from.commit();
    return true;
}

std::size_t take(FramePort& at) {
    const std::size_t count = at.receive().size();
    at.release();
    return count;
}

/// Frames a second that arrive.
double frame_rate(FramePort& from, FramePort& to, std::size_t bytes) {
    constexpr double kSeconds = 1.0;
    std::atomic<bool> stop{false};
    std::size_t received = 0;
    std::thread receiver([&] {
        while (!stop.load(std::memory_order_relaxed)) received += take(to);
    });
    const uib::net::MacAddress mac = to.mac();
    const auto start = Clock::now();
    while (seconds_since(start) < kSeconds) {
        for (int i = 0; i < 64 && put(from, mac, bytes); ++i) {
        }
        from.flush();
    }
    const double seconds = seconds_since(start);
    stop.store(true);
    receiver.join();
    return static_cast<double>(received) / seconds;
}

/// Microseconds of half a round trip of one small frame; each end has a thread that spins.
double frame_exchange(FramePort& a, FramePort& b) {
    std::atomic<bool> stop{false};
    std::thread echo([&] {
        while (!stop.load(std::memory_order_relaxed)) {
            if (take(b) == 0) continue;
            put(b, a.mac(), 64);
            b.flush();
        }
    });
    std::vector<double> times(kExchanges);
    for (double& time : times) {
        const auto start = Clock::now();
        put(a, b.mac(), 64);
        a.flush();
        while (take(a) == 0 && seconds_since(start) < 1) {
        }
        time = seconds_since(start);
    }
    stop.store(true);
    echo.join();
    std::nth_element(times.begin(), times.begin() + kExchanges / 2, times.end());
    return times[kExchanges / 2] / 2 * 1e6;
}

void frames(const char* first, const char* second, const char* driver, std::size_t bytes) {
    const auto a = open_port(first, driver);
    const auto b = open_port(second, driver);
    std::printf("frames_64 %.4f M/s\n", frame_rate(*a, *b, 64) / 1e6);
    std::printf("frames_path %.4f M/s\n", frame_rate(*a, *b, bytes) / 1e6);
    const std::size_t full = kHeader + a->mtu();
    std::printf("frames_full %.4f GB/s\n", frame_rate(*a, *b, full) * static_cast<double>(full) / 1e9);
    while (take(*b) != 0) {
    }
    std::printf("frame_exchange %.3f us\n", frame_exchange(*a, *b));
}

int udp_socket(sockaddr_in& address, const char* host, const char* port) {
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
    if (host != nullptr && ::inet_pton(AF_INET, host, &address.sin_addr) != 1)
        throw std::runtime_error("not an address");
    return ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

[[noreturn]] void udp_server(const char* port) {
    sockaddr_in own{};
    const int socket = udp_socket(own, nullptr, port);
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0)
        throw std::runtime_error("bind");
    std::puts("ready");
    std::fflush(stdout);
    for (;;) {
        char byte[64];
        sockaddr_in from{};
        socklen_t length = sizeof from;
        const ssize_t got =
            ::recvfrom(socket, byte, sizeof byte, 0, reinterpret_cast<sockaddr*>(&from), &length);
        if (got > 0)
            ::sendto(socket, byte, static_cast<std::size_t>(got), 0, reinterpret_cast<const sockaddr*>(&from),
                     length);
    }
}

void udp_client(const char* host, const char* port) {
    sockaddr_in to{};
    const int socket = udp_socket(to, host, port);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
        throw std::runtime_error("connect");
    std::vector<double> times(kExchanges);
    for (double& time : times) {
        char byte[64] = {};
        const auto start = Clock::now();
        ::send(socket, byte, 2, 0);
        while (::recv(socket, byte, sizeof byte, 0) <= 0 && seconds_since(start) < 1) {
        }
        time = seconds_since(start);
    }
    std::nth_element(times.begin(), times.begin() + kExchanges / 2, times.end());
    std::printf("udp_spinning %.3f us\n", times[kExchanges / 2] / 2 * 1e6);
    ::close(socket);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::string what = argc > 1 ? argv[1] : "";
        if (what == "frames" && argc == 6)
            frames(argv[2], argv[3], argv[4], std::strtoul(argv[5], nullptr, 10));
        else if (what == "udp-server" && argc == 3)
            udp_server(argv[2]);
        else if (what == "udp-client" && argc == 4)
            udp_client(argv[2], argv[3]);
        else
            throw std::runtime_error("frames A B DRIVER BYTES | udp-server PORT | udp-client ADDRESS PORT");
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_links: %s\n", error.what());
        return 1;
    }
}

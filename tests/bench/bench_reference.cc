// What this machine can do without us, to be measured in the same run as the figures that are set against it:
// memcpy, bare ping-pongs through shared memory and TCP, and copies between processes. Prints one "name value
// unit" a line; each value is the median of several repetitions. Processes are forked for each measurement
// and end with it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "examples/kit/memory.h"

namespace {

using Clock = std::chrono::steady_clock;
using uib::kit::Buffer;
using uib::kit::MemoryKind;

constexpr int kRepetitions = 7;
constexpr std::size_t kWalk = std::size_t{256} << 20;

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

double seconds_of(const std::function<void()>& work) {
    const auto start = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void report(const std::string& name, const char* unit, const std::function<double()>& measure) {
    std::vector<double> values(kRepetitions);
    for (double& value : values) value = measure();
    std::printf("%s %.4f %s\n", name.c_str(), median(values), unit);
    std::fflush(stdout);
}

/// A child that runs `work` and is ended with this object at the latest.
class Child {
  public:
    explicit Child(const std::function<void()>& work) : pid_(::fork()) {
        if (pid_ < 0) fail("fork");
        if (pid_ == 0) {
            work();
            ::_exit(0);
        }
    }
    ~Child() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    pid_t pid() const { return pid_; }

  private:
    pid_t pid_;
};

/// GB/s of memcpy between two buffers; walking through them, or the same bytes again and again.
double copy_rate(const Buffer& from, const Buffer& to, std::size_t bytes) {
    const std::size_t slots = from.size() / bytes;
    const std::size_t rounds = (std::size_t{1} << 30) / bytes;
    const double seconds = seconds_of([&] {
        for (std::size_t i = 0; i < rounds; ++i) {
            std::memcpy(to.data() + i % slots * bytes, from.data() + i % slots * bytes, bytes);
            asm volatile("" ::: "memory");
        }
    });
    return static_cast<double>(rounds * bytes) / seconds / 1e9;
}

void memcpy_rates() {
    for (const std::size_t bytes : {std::size_t{64} << 10, std::size_t{1} << 20}) {
        const std::string size = std::to_string(bytes >> 10) + "k";
        for (const bool walk : {false, true}) {
            const std::size_t total = walk ? kWalk : bytes;
            const Buffer from(MemoryKind::kPrivate, total);
            const Buffer to(MemoryKind::kPrivate, total);
            const Buffer shared(MemoryKind::kShared, total);
            for (const Buffer* buffer : {&from, &to, &shared}) std::memset(buffer->data(), 1, total);
            const std::string end = "_" + size + (walk ? "_walk" : "_hot");
            report("memcpy_private" + end, "GB/s", [&] { return copy_rate(from, to, bytes); });
            report("memcpy_to_shared" + end, "GB/s", [&] { return copy_rate(from, shared, bytes); });
        }
    }
}

/// GB/s of process_vm_readv or process_vm_writev against a sleeping child.
void process_copy_rates() {
    for (const std::size_t bytes : {std::size_t{64} << 10, std::size_t{1} << 20}) {
        const Buffer own(MemoryKind::kPrivate, bytes);
        const Buffer theirs(MemoryKind::kPrivate, bytes);
        std::memset(own.data(), 1, bytes);
        const Child child([&] {
            std::memset(theirs.data(), 2, bytes);
            ::pause();
        });
        ::usleep(20000);
        const std::size_t rounds = (std::size_t{512} << 20) / bytes;
        const iovec local{own.data(), bytes};
        const iovec remote{theirs.data(), bytes};
        for (const bool write : {false, true}) {
            report(std::string(write ? "process_vm_writev_" : "process_vm_readv_") +
                       std::to_string(bytes >> 10) + "k",
                   "GB/s", [&] {
                       const double seconds = seconds_of([&] {
                           for (std::size_t i = 0; i < rounds; ++i) {
                               const ssize_t got =
                                   write ? ::process_vm_writev(child.pid(), &local, 1, &remote, 1, 0)
                                         : ::process_vm_readv(child.pid(), &local, 1, &remote, 1, 0);
                               if (got != static_cast<ssize_t>(bytes)) fail("process_vm copy");
                           }
                       });
                       return static_cast<double>(rounds * bytes) / seconds / 1e9;
                   });
        }
    }
}

struct alignas(64) Word {
    std::atomic<std::uint32_t> value;
};

void wait_for(const Word& word, std::uint32_t value) {
    while (word.value.load(std::memory_order_acquire) != value) ::sched_yield();
}

/// Half a round trip in us: client, relay and server each on shared memory, giving the CPU away on every
/// empty look.
double three_party() {
    constexpr std::uint32_t kRounds = 50000;
    const Buffer page(MemoryKind::kShared, 4096);
    auto* words = new (page.data()) Word[4]{};
    const Child relay([words] {
        for (std::uint32_t i = 1;; ++i) {
            wait_for(words[0], i);
            words[1].value.store(i, std::memory_order_release);
            wait_for(words[2], i);
            words[3].value.store(i, std::memory_order_release);
        }
    });
    const Child server([words] {
        for (std::uint32_t i = 1;; ++i) {
            wait_for(words[1], i);
            words[2].value.store(i, std::memory_order_release);
        }
    });
    std::uint32_t next = 1;
    const auto exchange = [&] {
        words[0].value.store(next, std::memory_order_release);
        wait_for(words[3], next++);
    };
    for (int i = 0; i < 1000; ++i) exchange();
    const double seconds = seconds_of([&] {
        for (std::uint32_t i = 0; i < kRounds; ++i) exchange();
    });
    return seconds / kRounds / 2 * 1e6;
}

int tcp_socket() {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) fail("socket");
    return socket;
}

void tune(int socket) {
    const int one = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

bool receive_all(int socket, char* bytes, std::size_t count, int flags) {
    while (count != 0) {
        const ssize_t got = ::recv(socket, bytes, count, flags);
        if (got == 0) return false;
        if (got < 0) {
            if (errno == EAGAIN || errno == EINTR) continue;
            return false;
        }
        bytes += got;
        count -= static_cast<std::size_t>(got);
    }
    return true;
}

/// Half a round trip of 2 bytes over TCP on loopback, in us.
double tcp(bool spin) {
    constexpr int kRounds = 20000;
    const int flags = spin ? MSG_DONTWAIT : 0;
    const int listener = tcp_socket();
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener, 1) != 0 ||
        ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0)
        fail("listen");
    const Child server([listener, flags] {
        const int peer = ::accept(listener, nullptr, nullptr);
        tune(peer);
        char bytes[2];
        while (receive_all(peer, bytes, sizeof bytes, flags)) {
            if (::send(peer, bytes, sizeof bytes, MSG_NOSIGNAL) < 0) return;
        }
    });
    const int socket = tcp_socket();
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("connect");
    tune(socket);
    char bytes[2] = {1, 2};
    const auto exchange = [&] {
        if (::send(socket, bytes, sizeof bytes, MSG_NOSIGNAL) < 0 ||
            !receive_all(socket, bytes, sizeof bytes, flags))
            fail("TCP ping-pong");
    };
    for (int i = 0; i < 500; ++i) exchange();
    const double seconds = seconds_of([&] {
        for (int i = 0; i < kRounds; ++i) exchange();
    });
    ::close(socket);
    ::close(listener);
    return seconds / kRounds / 2 * 1e6;
}

}  // namespace

int main() {
    try {
        memcpy_rates();
        process_copy_rates();
        report("shared_memory_three_party", "us", three_party);
        report("tcp_blocking", "us", [] { return tcp(false); });
        report("tcp_spinning", "us", [] { return tcp(true); });
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_reference: %s\n", error.what());
        return 1;
    }
    return 0;
}

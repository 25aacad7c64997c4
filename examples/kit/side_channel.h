// The two sides of a test program talk over a stream socket beside the RDMA path: blocking, with a time
// limit.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace uib::kit {

/// Owns one end. Each call throws Error when the peer is gone or silent for the limit.
class SideChannel {
  public:
    /// `limit_seconds`: how long one receive may wait.
    SideChannel(int descriptor, int limit_seconds);
    ~SideChannel();
    SideChannel(SideChannel&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    SideChannel(const SideChannel&) = delete;
    SideChannel& operator=(const SideChannel&) = delete;
    SideChannel& operator=(SideChannel&&) = delete;

    /// Two connected ends (a socket pair).
    static std::pair<SideChannel, SideChannel> make_pair(int limit_seconds);

    /// The first that connects to the TCP port, within the limit. Throws Error.
    static SideChannel accept_one(const std::string& port, int limit_seconds);
    /// Connects to "HOST:PORT" (an IPv6 address in brackets or not).
    static SideChannel connect_to(const std::string& where, int limit_seconds);

    void send_bytes(const void* data, std::size_t bytes);
    void receive_bytes(void* data, std::size_t bytes);

    template <typename T>
    void send(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        send_bytes(&value, sizeof value);
    }
    template <typename T>
    T receive() {
        static_assert(std::is_trivially_copyable_v<T>);
        T value;
        receive_bytes(&value, sizeof value);
        return value;
    }
    template <typename T>
    void send_all(const std::vector<T>& values) {
        send(values.size());
        send_bytes(values.data(), values.size() * sizeof(T));
    }
    template <typename T>
    std::vector<T> receive_all() {
        std::vector<T> values(receive<std::size_t>());
        receive_bytes(values.data(), values.size() * sizeof(T));
        return values;
    }

  private:
    int descriptor_;
};

}  // namespace uib::kit

// Looks for the server of a driver that needs one (virtio_user, memif's client), beside the lane: a driver
// waits for as long as the server does not answer, some for ever.
//
// One try at a time, in a thread of its own that ends with it. Owned by the lane.
#pragma once

#include <future>
#include <memory>

#include "net/port/dpdk/dpdk_device.h"

namespace uib::net::dpdk {

class ServerSeeker {
  public:
    using Device = std::unique_ptr<DpdkDevice>;

    explicit ServerSeeker(const FramePortOptions& options, std::uint32_t mtu)
        : options_(options), mtu_(mtu) {}
    /// Waits for a try under way, but not for long: its thread then clears up after itself, or ends with the
    /// process.
    ~ServerSeeker();
    ServerSeeker(const ServerSeeker&) = delete;
    ServerSeeker& operator=(const ServerSeeker&) = delete;

    /// A try, with EAL running: starts `old`, whose buffers have all been given back, if it has not been
    /// started, makes another in its place if it has.
    void begin(Device old);
    [[nodiscard]] bool busy() const { return result_.valid(); }
    /// Waits for the end of a try, but not for long.
    void wait() const;
    /// True once after each begin(), when it is over. nullptr: nobody serves.
    bool take(Device& found);

  private:
    static Device attempt(const FramePortOptions& options, std::uint32_t mtu, Device old);

    FramePortOptions options_;
    std::uint32_t mtu_;
    std::future<Device> result_;
};

}  // namespace uib::net::dpdk

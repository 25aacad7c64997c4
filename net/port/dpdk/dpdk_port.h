// A frame port over one DPDK ethdev with one queue each way.
//
// Owns the ethdev, its buffer pool and, for drivers that share a host interface with the kernel, a watching
// socket (wake_socket.h) so that an idle lane can sleep. Received buffers are held until release(); what the
// driver does not take at once stays queued for the next flush(), as long as the link is up. An interface
// that has gone leaves the port without a device; refresh() makes another when one of that name is there
// again, or when the interface's MTU has outgrown the buffers. Where nobody serves the socket yet, or no
// longer (virtio_user, memif's client), a seeker makes it (server_seeker.h). Not thread-safe, but may be
// opened by one thread and used by another.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/port/dpdk/dpdk_device.h"
#include "net/port/dpdk/server_seeker.h"
#include "net/port/dpdk/xdp_statistics.h"
#include "net/port/frame_port.h"
#include "net/port/host_interface.h"
#include "net/port/wake_socket.h"

struct rte_mbuf;
struct rte_mempool;

namespace uib::net::dpdk {

class DpdkPort final : public FramePort {
  public:
    /// Makes the device; throws std::runtime_error with a message for the operator.
    explicit DpdkPort(const FramePortOptions& options);
    ~DpdkPort() override;
    DpdkPort(const DpdkPort&) = delete;
    DpdkPort& operator=(const DpdkPort&) = delete;

    [[nodiscard]] MacAddress mac() const override { return mac_; }
    [[nodiscard]] std::uint32_t mtu() const override { return mtu_; }
    [[nodiscard]] bool link_up() override;
    void refresh() override;
    std::span<const std::span<const std::byte>> receive() override;
    void release() override;
    std::span<std::byte> allocate(std::size_t bytes) override;
    void commit() override;
    void flush() override;
    [[nodiscard]] bool unsent() const override { return !queue_.empty(); }
    [[nodiscard]] std::uint32_t room() const override {
        return static_cast<std::uint32_t>(kQueue - queue_.size());
    }
    [[nodiscard]] int wake_descriptor() const override {
        return xdp_wake_ ? xdp_wake_.get() : wake_.descriptor();
    }
    void watch(bool asleep) override { wake_.watch(asleep); }
    const FramePortCounters& counters() override;

  private:
    static constexpr std::size_t kBurst = 64;   ///< frames taken at once
    static constexpr std::size_t kQueue = 256;  ///< frames waiting to be sent

    static constexpr unsigned kRefreshesPerTry = 20;
    /// Until a driver's own thread has done what it does when a connection is lost.
    static constexpr unsigned kRefreshesToSettle = 2;

    /// Makes the device for the interface as it is now. Throws std::runtime_error.
    void open();
    void open_wake_socket();
    void start_device(const DeviceArguments& arguments);
    /// From now on `device` carries the frames.
    void use(std::unique_ptr<DpdkDevice> device);
    /// Gives all its buffers back; without a taker it goes.
    std::unique_ptr<DpdkDevice> put_down();
    void reopen();
    void seek_server();
    /// Makes use of a socket that the driver has made.
    void adopt(int socket);
    void keep(rte_mbuf* buffer);

    FramePortOptions options_;
    bool on_host_ = false;       ///< on an interface that the kernel has, too
    bool seeks_server_ = false;  ///< without one there is no device: refresh() looks for it
    bool own_mac_ = false;       ///< the port is a station of its own, whatever the driver says
    std::unique_ptr<DpdkDevice> device_;
    std::uint16_t port_ = 0;       ///< of device_
    rte_mempool* pool_ = nullptr;  ///< of device_
    bool started_ = false;         ///< there is a device, and it runs
    unsigned refreshes_until_try_ = 0;
    unsigned refreshes_without_turn_ = 0;
    std::uint32_t room_mtu_ = 0;  ///< what the device's buffers hold
    HostInterface host_;
    MacAddress mac_{};
    std::uint32_t mtu_ = 1500;
    WakeSocket wake_;         ///< driver af_packet
    ipc::UniqueFd xdp_wake_;  ///< driver af_xdp: an epoll set of its sockets
    XdpStatistics xdp_statistics_;
    std::array<rte_mbuf*, kBurst> burst_{};
    std::vector<std::span<const std::byte>> views_;  ///< of this receive()
    std::vector<rte_mbuf*> held_;                    ///< until release()
    std::vector<rte_mbuf*> queue_;
    rte_mbuf* writing_ = nullptr;
    FramePortCounters counters_;
    std::optional<ServerSeeker> seeker_;
};

}  // namespace uib::net::dpdk

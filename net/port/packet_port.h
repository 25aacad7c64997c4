// A frame port over a packet socket of its own: driver af_packet, unless arguments for DPDK's are given.
//
// It takes less of the kernel than DPDK's driver of that name. A frame of 80 bytes through a veth pair costs
// about a quarter less, sending and receiving together, because:
//   - the driver's sockets are in a fanout group, for queues that we do not have: each frame that comes is
//     looked at for fragments and hashed over its headers, and the group hears what the host sends. This
//     socket is in none and hears nothing of that;
//   - a plain send copies the frame, which is cheaper than mapping a transmit ring's pages into it;
//   - the receive ring's own socket wakes the lane. The driver's is nobody's to wait on, and a second one
//     gets to see each frame;
//   - frames are read where the kernel has put them.
// The kernel takes VLAN tags out of frames; they are put back. An interface that has gone, or whose MTU has
// outgrown the ring, gets another ring under the same descriptor by refresh(). Not thread-safe, but may be
// opened by one thread and used by another.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/ipc/unique_fd.h"
#include "net/port/frame_port.h"
#include "net/port/host_interface.h"

struct tpacket2_hdr;

namespace uib::net {

class PacketPort final : public FramePort {
  public:
    /// Throws std::runtime_error with a message for the operator.
    explicit PacketPort(const FramePortOptions& options);
    ~PacketPort() override;
    PacketPort(const PacketPort&) = delete;
    PacketPort& operator=(const PacketPort&) = delete;

    [[nodiscard]] MacAddress mac() const override { return mac_; }
    [[nodiscard]] std::uint32_t mtu() const override { return mtu_; }
    [[nodiscard]] bool link_up() override;
    void refresh() override;
    std::span<const std::span<const std::byte>> receive() override;
    void release() override;
    std::span<std::byte> allocate(std::size_t bytes) override;
    void commit() override;
    void flush() override;
    [[nodiscard]] bool unsent() const override { return queued_ != 0; }
    [[nodiscard]] std::uint32_t room() const override { return kQueue - queued_; }
    [[nodiscard]] int wake_descriptor() const override { return socket_.get(); }
    /// The ring is readable exactly while a frame is in it: nothing is to be switched.
    void watch(bool) override {}
    const FramePortCounters& counters() override;

  private:
    static constexpr std::uint32_t kBurst = 64;
    static constexpr std::uint32_t kQueue = 256;  ///< frames waiting to be sent
    static constexpr std::uint32_t kBatch = 32;   ///< of a system call

    void open();
    void map_ring();
    void unmap_ring();
    [[nodiscard]] tpacket2_hdr& header(std::uint32_t frame) const;
    void keep(tpacket2_hdr& header);
    [[nodiscard]] std::uint32_t send_batch();
    void forget(std::uint32_t frames);

    FramePortOptions options_;
    HostInterface host_;
    MacAddress mac_{};
    std::uint32_t mtu_ = 1500;
    std::uint32_t room_mtu_ = 0;  ///< what a place of the rings holds
    bool started_ = false;        ///< there are rings, and the socket is the interface's
    ipc::UniqueFd socket_;
    std::byte* ring_ = nullptr;
    std::uint32_t place_ = 0;                        ///< bytes of one in the receive ring
    std::uint32_t next_ = 0;                         ///< to be received, free-running
    std::uint32_t held_ = 0;                         ///< before it, until release()
    std::vector<std::span<const std::byte>> views_;  ///< of this receive()
    std::vector<std::byte> outgoing_;                ///< kQueue places
    std::vector<std::uint32_t> lengths_;             ///< of the frames in them
    std::uint32_t oldest_ = 0;                       ///< to be sent, free-running
    std::uint32_t queued_ = 0;
    std::uint32_t writing_ = 0;  ///< length of the frame allocated, 0: none
    FramePortCounters counters_;
};

}  // namespace uib::net

#include "net/port/packet_port.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "net/port/host_port.h"
#include "net/port/wake_socket.h"

namespace uib::net {

namespace {

constexpr std::uint32_t kHeader = 14;
constexpr std::uint32_t kVlanHeader = 4;
constexpr std::uint32_t kAddresses = 12;     // of the Ethernet header, before a tag
constexpr std::uint32_t kPacketHeader = 96;  // struct tpacket2_hdr and the address behind it, rounded up
constexpr std::uint32_t kBlock = 32768;
constexpr std::uint32_t kRingFrames = 1024;  // rides out a receiver that loses its core for a while

[[noreturn]] void fail_by_errno(const FramePortOptions& options, const std::string& what) {
    fail(options, what + ": " + std::strerror(errno));
}

template <typename T>
bool set(int socket, int name, const T& value) {
    return ::setsockopt(socket, SOL_PACKET, name, &value, sizeof value) == 0;
}

}  // namespace

PacketPort::PacketPort(const FramePortOptions& options) : options_(options), socket_(packet_socket(options)) {
    views_.reserve(kBurst);
    // Nothing comes before bind(): it has no protocol yet.
    take_only(socket_.get(), options.ether_type);
    const int version = TPACKET_V2, yes = 1;
    const unsigned reserve = kVlanHeader;
    if (!set(socket_.get(), PACKET_VERSION, version) || !set(socket_.get(), PACKET_RESERVE, reserve) ||
        !set(socket_.get(), PACKET_IGNORE_OUTGOING, yes))
        fail_by_errno(options, "the packet socket does not take its options");
    try {
        open();
    } catch (...) {
        unmap_ring();
        throw;
    }
}

PacketPort::~PacketPort() {
    unmap_ring();
}

void PacketPort::open() {
    host_ = enabled_interface(options_);
    mtu_ = first_mtu(options_, host_);
    if (mtu_ > room_mtu_) {
        unmap_ring();
        map_ring();
    }
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = host_.index();
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        fail_by_errno(options_, "the packet socket does not get the interface");
    mac_ = host_.mac();
    started_ = true;
}

void PacketPort::map_ring() {
    const std::uint32_t place = std::bit_ceil(mtu_ + kHeader + 2 * kVlanHeader + kPacketHeader);
    if (place > kBlock)
        fail(options_, "carries frames of at most " + std::to_string(kBlock - kPacketHeader) +
                           " bytes; set a smaller mtu");
    const tpacket_req request{kBlock, kRingFrames / (kBlock / place), place, kRingFrames};
    if (!set(socket_.get(), PACKET_RX_RING, request)) fail_by_errno(options_, "no receive ring");
    void* mapped = ::mmap(nullptr, std::size_t{place} * kRingFrames, PROT_READ | PROT_WRITE, MAP_SHARED,
                          socket_.get(), 0);
    if (mapped == MAP_FAILED) {
        const std::string why = std::strerror(errno);
        set(socket_.get(), PACKET_RX_RING, tpacket_req{});  // or there would be no other one ever
        fail(options_, "no receive ring: " + why);
    }
    ring_ = static_cast<std::byte*>(mapped);
    place_ = place;
    next_ = 0;
    room_mtu_ = mtu_;
    outgoing_.resize(std::size_t{place_} * kQueue);
    lengths_.resize(kQueue);
}

void PacketPort::unmap_ring() {
    started_ = false;
    views_.clear();
    room_mtu_ = held_ = writing_ = 0;
    // Places of another size follow.
    counters_.tx_refused += std::exchange(queued_, 0);
    if (ring_ == nullptr) return;
    ::munmap(ring_, std::size_t{place_} * kRingFrames);
    ring_ = nullptr;
    set(socket_.get(), PACKET_RX_RING, tpacket_req{});
}

bool PacketPort::link_up() {
    return started_ && host_.current_index() == host_.index() && host_.up();
}

void PacketPort::refresh() {
    const std::optional<std::uint32_t> wanted = mtu_now(options_, host_);
    if (!wanted) return;  // link_up() tells
    if (started_ && host_.current_index() == host_.index() && *wanted <= room_mtu_) {
        mtu_ = *wanted;
        mac_ = host_.mac();
        return;
    }
    try {
        open();
    } catch (const std::runtime_error&) {
        started_ = false;  // the next refresh() tries again
    }
}

tpacket2_hdr& PacketPort::header(std::uint32_t frame) const {
    return *reinterpret_cast<tpacket2_hdr*>(ring_ + std::size_t{frame % kRingFrames} * place_);
}

std::span<const std::span<const std::byte>> PacketPort::receive() {
    views_.clear();
    if (!started_) return views_;
    for (std::uint32_t i = 0; i < kBurst && held_ < kRingFrames; ++i) {
        tpacket2_hdr& at = header(next_);
        const std::uint32_t status = std::atomic_ref(at.tp_status).load(std::memory_order_acquire);
        if ((status & TP_STATUS_USER) == 0) break;
        ++next_;
        ++held_;
        keep(at);
    }
    return views_;
}

void PacketPort::keep(tpacket2_hdr& header) {
    std::byte* data = reinterpret_cast<std::byte*>(&header) + header.tp_mac;
    std::uint32_t bytes = header.tp_snaplen;
    const bool whole = header.tp_len == bytes && bytes >= kHeader && bytes <= mtu_ + kHeader + kVlanHeader;
    const bool own = whole && std::memcmp(data + mac_.size(), mac_.data(), mac_.size()) == 0;
    if (!whole || own) {
        ++(own ? counters_.rx_own : counters_.rx_truncated);
        return;
    }
    if ((header.tp_status & TP_STATUS_VLAN_VALID) != 0) {
        const bool told = (header.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0;
        const std::array tag{htons(told ? header.tp_vlan_tpid : std::uint16_t{ETH_P_8021Q}),
                             htons(header.tp_vlan_tci)};
        data -= kVlanHeader;
        bytes += kVlanHeader;
        std::memmove(data, data + kVlanHeader, kAddresses);
        std::memcpy(data + kAddresses, tag.data(), sizeof tag);
    }
    ++counters_.rx_frames;
    counters_.rx_bytes += bytes;
    views_.emplace_back(data, bytes);
}

void PacketPort::release() {
    views_.clear();
    for (; held_ != 0; --held_)
        std::atomic_ref(header(next_ - held_).tp_status).store(TP_STATUS_KERNEL, std::memory_order_release);
}

std::span<std::byte> PacketPort::allocate(std::size_t bytes) {
    writing_ = 0;
    if (started_ && bytes > mtu_ + kHeader + kVlanHeader) {
        ++counters_.tx_too_long;
        return {};
    }
    if (!started_ || queued_ == kQueue) {
        ++counters_.tx_no_buffer;
        return {};
    }
    writing_ = static_cast<std::uint32_t>(bytes);
    return {outgoing_.data() + std::size_t{(oldest_ + queued_) % kQueue} * place_, bytes};
}

void PacketPort::commit() {
    if (writing_ == 0) return;
    ++counters_.tx_frames;
    counters_.tx_bytes += writing_;
    lengths_[(oldest_ + queued_) % kQueue] = std::exchange(writing_, 0);
    ++queued_;
}

void PacketPort::flush() {
    while (queued_ != 0) {
        std::uint32_t sent = send_batch();
        // The first call after the interface was down only tells of that.
        if (sent == 0 && errno == ENETDOWN) sent = send_batch();
        if (sent == 0) {
            const bool full = errno == EAGAIN || errno == ENOBUFS || errno == EINTR;
            ++counters_.tx_refused;
            // Without a link nobody will ever take them. One that is not taken for what it is, as those that
            // were made before the interface's MTU shrank, must not be in the way of the others.
            if (!link_up())
                forget(queued_);
            else if (!full)
                forget(1);
            if (full) return;
        }
        forget(sent);
    }
}

void PacketPort::forget(std::uint32_t frames) {
    oldest_ += frames;
    queued_ -= frames;
}

/// Frames that the kernel has taken.
std::uint32_t PacketPort::send_batch() {
    std::array<mmsghdr, kBatch> messages;
    std::array<iovec, kBatch> parts;
    const std::uint32_t count = std::min(queued_, kBatch);
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t at = (oldest_ + i) % kQueue;
        parts[i] = {outgoing_.data() + std::size_t{at} * place_, lengths_[at]};
        messages[i] = {};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    if (count == 1) return ::send(socket_.get(), parts[0].iov_base, parts[0].iov_len, 0) < 0 ? 0 : 1;
    const int sent = ::sendmmsg(socket_.get(), messages.data(), count, 0);
    return sent < 0 ? 0 : static_cast<std::uint32_t>(sent);
}

const FramePortCounters& PacketPort::counters() {
    tpacket_stats news{};  // since the kernel was asked last
    socklen_t length = sizeof news;
    if (::getsockopt(socket_.get(), SOL_PACKET, PACKET_STATISTICS, &news, &length) == 0)
        counters_.rx_missed += news.tp_drops;
    return counters_;
}

}  // namespace uib::net

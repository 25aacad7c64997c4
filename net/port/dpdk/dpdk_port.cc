#include "net/port/dpdk/dpdk_port.h"

#include <dlfcn.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "net/port/dpdk/eal.h"
#include "net/port/dpdk/stale_socket.h"
#include "net/port/dpdk/xdp_messages.h"
#include "net/port/host_port.h"

namespace uib::net::dpdk {

namespace {

constexpr std::uint32_t kHeader = 14;
constexpr std::uint32_t kVlanHeader = 4;

/// Beside this module; empty if it was not built.
std::string xdp_program() {
    Dl_info self{};
    if (::dladdr(reinterpret_cast<const void*>(&xdp_program), &self) == 0 || self.dli_fname == nullptr)
        return {};
    const auto file = std::filesystem::path(self.dli_fname).parent_path() / "uib-xdp.o";
    std::error_code error;
    return std::filesystem::exists(file, error) ? file.string() : std::string();
}

/// Drivers that are given no address make one up or have the same for all. Over tap the driver has the
/// kernel's, who is the station at the wire's other end: a bridge there would keep our frames for itself.
MacAddress drawn_mac() {
    std::random_device random;
    MacAddress mac{0x02, 0x55, 0x49};
    std::generate(mac.begin() + 3, mac.end(), [&] { return static_cast<std::uint8_t>(random()); });
    return mac;
}

}  // namespace

DpdkPort::DpdkPort(const FramePortOptions& options)
    : options_(options),
      on_host_(options.driver == "af_packet" || options.driver == "af_xdp"),
      seeks_server_(options.driver == "virtio_user" || (options.driver == "memif" && !options.server)),
      own_mac_(!on_host_ && options.driver != "pci" && options.extra.find("mac=") == std::string::npos) {
    if (own_mac_) mac_ = drawn_mac();
    views_.reserve(kBurst);
    queue_.reserve(kQueue);
    try {
        open();
    } catch (...) {
        put_down();
        throw;
    }
}

void DpdkPort::open() {
    if (on_host_) {
        host_ = enabled_interface(options_);
        // Said before the driver hides it: a failing device is not an error of EAL's.
        const ipc::UniqueFd may_be_made = packet_socket(options_);
    }
    if (over_socket(options_.driver)) {
        if (const std::string why = socket_trouble(options_.interface, options_.server); !why.empty())
            fail(options_, why);
    }
    mtu_ = on_host_ ? first_mtu(options_, host_) : options_.mtu;
    if (mtu_ == 0) mtu_ = default_mtu(options_.driver);
    room_mtu_ = mtu_;
    DeviceArguments arguments;
    try {
        arguments = device_arguments(options_, DpdkDevice::next_number(), mtu_, xdp_program());
    } catch (const std::invalid_argument& error) {
        fail(options_, error.what());
    }
    if (const std::string error = start_eal(arguments.pci); !error.empty()) fail(options_, error);
    if (seeks_server_) {
        seeker_.emplace(options_, mtu_);
        seeker_->begin(nullptr);
        seeker_->wait();
        seek_server();
        return;
    }
    if (options_.driver == "af_packet") open_wake_socket();
    start_device(arguments);
}

// Before the driver's ring: the kernel serves the youngest packet socket first, so a frame is in the ring
// when it wakes the lane. The other way round a receiving CPU that is held up in between leaves the lane to
// find nothing and to sleep again, over a frame that wakes nobody any more.
void DpdkPort::open_wake_socket() {
    try {
        if (wake_.descriptor() < 0) {
            wake_ = WakeSocket(host_.index(), options_.ether_type);
        } else {
            wake_.bind(host_.index());
        }
    } catch (const std::system_error& error) {
        fail(options_, error.what());
    }
}

void DpdkPort::refresh() {
    if (!on_host_ && !seeks_server_) return;
    register_thread();
    if (seeks_server_) {
        seek_server();
        return;
    }
    const std::optional<std::uint32_t> wanted = mtu_now(options_, host_);
    if (!wanted) return;  // link_up() tells
    if (started_ && host_.current_index() == host_.index() && *wanted <= room_mtu_) {
        mtu_ = *wanted;
        mac_ = host_.mac();
        return;
    }
    if (refreshes_until_try_ != 0) {
        --refreshes_until_try_;
        return;
    }
    reopen();
}

// A connection that was lost is not taken up by the same device: virtio_user's cannot, memif's does not
// always.
void DpdkPort::seek_server() {
    if (seeker_->busy()) {
        std::unique_ptr<DpdkDevice> found;
        if (!seeker_->take(found)) return;
        use(std::move(found));
        refreshes_until_try_ = kRefreshesPerTry;
        return;
    }
    if (started_ && link_up()) {
        refreshes_until_try_ = kRefreshesToSettle;
        return;
    }
    if (refreshes_until_try_ != 0) {
        --refreshes_until_try_;
        return;
    }
    seeker_->begin(put_down());
}

void DpdkPort::reopen() {
    const DevicesTurn turn(std::chrono::milliseconds(0));
    if (!turn.held() && ++refreshes_without_turn_ < kRefreshesPerTry) return;
    refreshes_without_turn_ = 0;
    put_down();
    try {
        open();
    } catch (const std::runtime_error&) {
        put_down();
    }
    if (!started_) refreshes_until_try_ = kRefreshesPerTry;
}

void DpdkPort::start_device(const DeviceArguments& arguments) {
    const int kind = options_.driver == "af_xdp" ? AF_XDP : AF_PACKET;
    const std::vector<int> before = sockets_of(kind);
    std::optional<XdpMessages> messages;
    if (options_.driver == "af_xdp") messages.emplace();
    try {
        auto made = std::make_unique<DpdkDevice>(arguments, options_.driver);
        if (const int status = made->start(); status != 0)
            throw std::runtime_error(std::string("the device does not start: ") + ::rte_strerror(-status));
        use(std::move(made));
    } catch (const std::runtime_error& error) {
        const bool more = messages && !messages->text().empty();
        fail(options_, error.what() + (more ? "; what its libraries said:\n" + messages->text() : ""));
    }
    for (const int socket : sockets_of(kind))
        if (on_host_ && std::find(before.begin(), before.end(), socket) == before.end()) adopt(socket);
}

void DpdkPort::use(std::unique_ptr<DpdkDevice> device) {
    device_ = std::move(device);
    if (device_ == nullptr) return;
    port_ = device_->port();
    pool_ = device_->buffers();
    started_ = device_->started();
    if (!own_mac_) mac_ = host_.valid() ? host_.mac() : device_->mac();
}

// The driver has options neither for a filter nor for something to wait on.
void DpdkPort::adopt(int socket) {
    if (options_.driver == "af_packet") {
        take_only(socket, options_.ether_type);
        return;
    }
    xdp_statistics_.add(socket);
    if (!xdp_wake_) xdp_wake_.reset(::epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(xdp_wake_.get(), EPOLL_CTL_ADD, socket, &event);
}

DpdkPort::~DpdkPort() {
    put_down();
}

std::unique_ptr<DpdkDevice> DpdkPort::put_down() {
    release();
    ::rte_pktmbuf_free(std::exchange(writing_, nullptr));
    for (rte_mbuf* buffer : queue_) ::rte_pktmbuf_free(buffer);
    queue_.clear();
    xdp_statistics_.forget_sockets();
    started_ = false;
    pool_ = nullptr;
    return std::move(device_);
}

bool DpdkPort::link_up() {
    if (!started_) return false;
    if (on_host_) return host_.current_index() == host_.index() && host_.up();
    rte_eth_link link{};
    return ::rte_eth_link_get_nowait(port_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

std::span<const std::span<const std::byte>> DpdkPort::receive() {
    views_.clear();
    if (!started_) return views_;
    register_thread();
    const std::uint16_t count = ::rte_eth_rx_burst(port_, 0, burst_.data(), kBurst);
    for (std::uint16_t i = 0; i < count; ++i) keep(burst_[i]);
    return views_;
}

void DpdkPort::keep(rte_mbuf* buffer) {
    const std::byte* data = rte_pktmbuf_mtod(buffer, const std::byte*);
    const std::uint32_t bytes = rte_pktmbuf_pkt_len(buffer);
    const bool whole = buffer->nb_segs == 1 && bytes >= kHeader && bytes <= mtu_ + kHeader + kVlanHeader;
    const bool own = whole && std::memcmp(data + mac_.size(), mac_.data(), mac_.size()) == 0;
    if (!whole || own) {
        ++(own ? counters_.rx_own : counters_.rx_truncated);
        ::rte_pktmbuf_free(buffer);
        return;
    }
    ++counters_.rx_frames;
    counters_.rx_bytes += bytes;
    held_.push_back(buffer);
    views_.emplace_back(data, bytes);
}

void DpdkPort::release() {
    if (held_.empty()) return;
    ::rte_pktmbuf_free_bulk(held_.data(), static_cast<unsigned>(held_.size()));
    held_.clear();
}

std::span<std::byte> DpdkPort::allocate(std::size_t bytes) {
    if (!started_) {
        ++counters_.tx_no_buffer;
        return {};
    }
    if (bytes > mtu_ + kHeader + kVlanHeader) {
        ++counters_.tx_too_long;
        return {};
    }
    if (writing_ == nullptr) {
        if (queue_.size() < kQueue) writing_ = ::rte_pktmbuf_alloc(pool_);
        if (writing_ == nullptr) {
            ++counters_.tx_no_buffer;
            return {};
        }
    }
    writing_->data_len = static_cast<std::uint16_t>(bytes);
    writing_->pkt_len = static_cast<std::uint32_t>(bytes);
    return {rte_pktmbuf_mtod(writing_, std::byte*), bytes};
}

void DpdkPort::commit() {
    if (writing_ == nullptr) return;
    ++counters_.tx_frames;
    counters_.tx_bytes += writing_->pkt_len;
    queue_.push_back(std::exchange(writing_, nullptr));
}

void DpdkPort::flush() {
    if (queue_.empty()) return;
    register_thread();
    std::size_t sent = 0;
    while (sent < queue_.size()) {
        const std::uint16_t taken = ::rte_eth_tx_burst(port_, 0, queue_.data() + sent,
                                                       static_cast<std::uint16_t>(queue_.size() - sent));
        if (taken == 0) break;
        sent += taken;
    }
    if (sent < queue_.size()) ++counters_.tx_refused;
    // Without a link nobody will ever take them.
    if (sent == 0 && !link_up()) {
        ::rte_pktmbuf_free_bulk(queue_.data(), static_cast<unsigned>(queue_.size()));
        sent = queue_.size();
    }
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(sent));
}

const FramePortCounters& DpdkPort::counters() {
    rte_eth_stats stats{};
    if (started_ && ::rte_eth_stats_get(port_, &stats) == 0) {
        counters_.rx_missed = stats.imissed + stats.rx_nombuf;
        counters_.rx_errors = stats.ierrors;
    }
    xdp_statistics_.read(counters_);
    return counters_;
}

}  // namespace uib::net::dpdk

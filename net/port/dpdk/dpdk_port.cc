#include "net/port/dpdk/dpdk_port.h"

#include <dlfcn.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "net/port/dpdk/eal.h"
#include "net/port/dpdk/stale_socket.h"
#include "net/port/dpdk/xdp_buffers.h"

namespace uib::net::dpdk {

namespace {

constexpr std::uint32_t kBuffers = 4095;  // rings both ways, a burst, the queue, and what a turn holds
constexpr std::uint32_t kCachedBuffers = 128;
constexpr std::uint16_t kRxDescriptors = 1024;
constexpr std::uint16_t kTxDescriptors = 1024;
constexpr std::uint32_t kHeader = 14;
constexpr std::uint32_t kVlanHeader = 4;

[[noreturn]] void fail(const FramePortOptions& options, const std::string& why) {
    throw std::runtime_error("port " + options.name + " (driver " + options.driver + ", " +
                             options.interface + "): " + why);
}

/// What the kernel would say to the driver, said before the driver hides it (a failing device is not an error
/// of EAL's).
void check_privilege(const FramePortOptions& options) {
    const int probe = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (probe < 0)
        fail(options, "needs CAP_NET_RAW (or a user namespace with a network namespace of its own)");
    ::close(probe);
}

std::uint32_t choose_mtu(const FramePortOptions& options, const HostInterface& host) {
    const std::uint32_t offered = host.valid() ? host.mtu() : default_mtu(options.driver);
    if (options.mtu == 0) return offered;
    if (host.valid() && options.mtu > offered)
        fail(options, "mtu " + std::to_string(options.mtu) + " is more than the interface has (" +
                          std::to_string(offered) + "); raise it with: ip link set " + options.interface +
                          " mtu " + std::to_string(options.mtu));
    return options.mtu;
}

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

/// Drivers say at each attempt that nobody serves their socket. We look again and again.
class QuietLog {
  public:
    QuietLog() : before_(::rte_log_get_global_level()) { ::rte_log_set_global_level(RTE_LOG_CRIT); }
    ~QuietLog() { ::rte_log_set_global_level(before_); }
    QuietLog(const QuietLog&) = delete;
    QuietLog& operator=(const QuietLog&) = delete;

  private:
    std::uint32_t before_;
};

std::atomic<unsigned> next_number{0};

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
        close();
        throw;
    }
}

void DpdkPort::open() {
    if (on_host_) {
        try {
            host_ = HostInterface(options_.interface);
        } catch (const std::runtime_error& error) {
            fail(options_, error.what());
        }
        if (!host_.enabled())
            fail(options_, "the interface is down; ip link set " + options_.interface + " up");
        check_privilege(options_);
    }
    if (over_socket(options_.driver)) {
        if (const std::string why = socket_trouble(options_.interface, options_.server); !why.empty())
            fail(options_, why);
    }
    mtu_ = room_mtu_ = choose_mtu(options_, host_);
    DeviceArguments arguments;
    try {
        arguments = device_arguments(options_, next_number++, mtu_, xdp_program());
    } catch (const std::invalid_argument& error) {
        fail(options_, error.what());
    }
    if (const std::string error = start_eal(arguments.pci); !error.empty()) fail(options_, error);
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
    const int index = host_.current_index();
    if (index == 0 || !host_.enabled()) return;  // link_up() tells
    const std::uint32_t offered = host_.mtu();
    const std::uint32_t wanted = options_.mtu == 0 ? offered : std::min(offered, options_.mtu);
    if (started_ && index == host_.index() && wanted <= room_mtu_) {
        mtu_ = wanted;
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
    const QuietLog quiet;
    if (started_ && link_up()) {
        refreshes_until_try_ = kRefreshesToSettle;
        return;
    }
    if (refreshes_until_try_ != 0) {
        --refreshes_until_try_;
        return;
    }
    if (made_ && !started_) {
        started_ = ::rte_eth_dev_start(port_) == 0;
    } else {
        reopen();
    }
    refreshes_until_try_ = kRefreshesPerTry;
}

void DpdkPort::reopen() {
    close();
    try {
        open();
    } catch (const std::runtime_error&) {
        close();
    }
    if (!started_) refreshes_until_try_ = kRefreshesPerTry;
}

void DpdkPort::start_device(const DeviceArguments& arguments) {
    std::optional<QuietLog> quiet;
    if (seeks_server_) quiet.emplace();
    const bool xdp = options_.driver == "af_xdp";
    const std::vector<int> before = sockets_of(xdp ? AF_XDP : AF_PACKET);
    if (::rte_dev_probe(arguments.arguments.c_str()) < 0 ||
        ::rte_eth_dev_get_port_by_name(arguments.device.c_str(), &port_) != 0) {
        if (seeks_server_) return;
        fail(options_,
             "the driver does not take it (is Debian's package of that driver installed, is the interface "
             "free?)");
    }
    made_ = true;
    rte_ether_addr address{};
    ::rte_eth_macaddr_get(port_, &address);
    if (!own_mac_) std::copy(std::begin(address.addr_bytes), std::end(address.addr_bytes), mac_.begin());
    if (host_.valid()) mac_ = host_.mac();
    pool_ = ::rte_pktmbuf_pool_create(
        ("uib-" + arguments.device).c_str(), kBuffers, kCachedBuffers, 0,
        static_cast<std::uint16_t>(std::min<std::uint32_t>(arguments.room, 0xFFFF)), SOCKET_ID_ANY);
    if (pool_ == nullptr) fail(options_, std::string("no buffers: ") + ::rte_strerror(rte_errno));
    if (xdp) set_unmapped_buffers_aside(*pool_);
    rte_eth_conf configuration{};
    std::uint16_t receive = kRxDescriptors, transmit = kTxDescriptors;
    int status = ::rte_eth_dev_configure(port_, 1, 1, &configuration);
    if (status == 0) status = ::rte_eth_dev_adjust_nb_rx_tx_desc(port_, &receive, &transmit);
    if (status == 0) status = ::rte_eth_rx_queue_setup(port_, 0, receive, SOCKET_ID_ANY, nullptr, pool_);
    if (status == 0) status = ::rte_eth_tx_queue_setup(port_, 0, transmit, SOCKET_ID_ANY, nullptr);
    if (status == 0) {
        status = ::rte_eth_dev_start(port_);
        started_ = status == 0;
        if (seeks_server_) return;
    }
    if (status != 0) fail(options_, std::string("the device does not start: ") + ::rte_strerror(-status));
    for (const int socket : sockets_of(xdp ? AF_XDP : AF_PACKET))
        if (on_host_ && std::find(before.begin(), before.end(), socket) == before.end()) adopt(socket);
}

// The driver has options neither for a filter nor for something to wait on.
void DpdkPort::adopt(int socket) {
    if (options_.driver == "af_packet") {
        take_only(socket, options_.ether_type);
        return;
    }
    if (!xdp_wake_) xdp_wake_.reset(::epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(xdp_wake_.get(), EPOLL_CTL_ADD, socket, &event);
}

DpdkPort::~DpdkPort() {
    close();
}

void DpdkPort::close() {
    release();
    ::rte_pktmbuf_free(std::exchange(writing_, nullptr));
    for (rte_mbuf* buffer : queue_) ::rte_pktmbuf_free(buffer);
    queue_.clear();
    started_ = false;
    if (std::exchange(made_, false)) {
        rte_eth_dev_info info{};
        const bool known = ::rte_eth_dev_info_get(port_, &info) == 0;
        ::rte_eth_dev_stop(port_);
        ::rte_eth_dev_close(port_);
        // A virtual device that nothing stands on would stay for ever.
        if (known && options_.driver != "pci") ::rte_dev_remove(info.device);
    }
    ::rte_mempool_free(std::exchange(pool_, nullptr));
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
    return counters_;
}

}  // namespace uib::net::dpdk

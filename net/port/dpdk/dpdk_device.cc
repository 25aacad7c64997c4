#include "net/port/dpdk/dpdk_device.h"

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "net/port/dpdk/xdp_buffers.h"

namespace uib::net::dpdk {

namespace {

constexpr std::uint32_t kBuffers = 4095;  // rings both ways, a burst, the queue, and what a turn holds
constexpr std::uint32_t kCachedBuffers = 128;
constexpr std::uint16_t kRxDescriptors = 1024;
constexpr std::uint16_t kTxDescriptors = 1024;

}  // namespace

unsigned DpdkDevice::next_number() {
    static std::atomic<unsigned> next{0};
    return next++;
}

DpdkDevice::DpdkDevice(const DeviceArguments& arguments, const std::string& driver) : pci_(arguments.pci) {
    if (::rte_dev_probe(arguments.arguments.c_str()) < 0 ||
        ::rte_eth_dev_get_port_by_name(arguments.device.c_str(), &port_) != 0)
        throw std::runtime_error(
            "the driver does not take it (is Debian's package of that driver installed, is the interface "
            "free?)");
    try {
        configure(arguments, driver == "af_xdp");
    } catch (...) {
        remove();
        throw;
    }
}

void DpdkDevice::configure(const DeviceArguments& arguments, bool xdp) {
    buffers_ = ::rte_pktmbuf_pool_create(
        ("uib-" + arguments.device).c_str(), kBuffers, kCachedBuffers, 0,
        static_cast<std::uint16_t>(std::min<std::uint32_t>(arguments.room, 0xFFFF)), SOCKET_ID_ANY);
    if (buffers_ == nullptr)
        throw std::runtime_error(std::string("no buffers: ") + ::rte_strerror(rte_errno));
    if (xdp) set_unmapped_buffers_aside(*buffers_);
    rte_eth_conf configuration{};
    std::uint16_t receive = kRxDescriptors, transmit = kTxDescriptors;
    int status = ::rte_eth_dev_configure(port_, 1, 1, &configuration);
    if (status == 0) status = ::rte_eth_dev_adjust_nb_rx_tx_desc(port_, &receive, &transmit);
    if (status == 0) status = ::rte_eth_rx_queue_setup(port_, 0, receive, SOCKET_ID_ANY, nullptr, buffers_);
    if (status == 0) status = ::rte_eth_tx_queue_setup(port_, 0, transmit, SOCKET_ID_ANY, nullptr);
    if (status != 0)
        throw std::runtime_error(std::string("the device cannot be set up: ") + ::rte_strerror(-status));
}

int DpdkDevice::start() {
    const int status = ::rte_eth_dev_start(port_);
    started_ = status == 0;
    return status;
}

MacAddress DpdkDevice::mac() const {
    rte_ether_addr address{};
    ::rte_eth_macaddr_get(port_, &address);
    MacAddress mac;
    std::copy(std::begin(address.addr_bytes), std::end(address.addr_bytes), mac.begin());
    return mac;
}

DpdkDevice::~DpdkDevice() {
    remove();
}

void DpdkDevice::remove() {
    rte_eth_dev_info info{};
    const bool known = ::rte_eth_dev_info_get(port_, &info) == 0;
    ::rte_eth_dev_stop(port_);
    ::rte_eth_dev_close(port_);
    // A virtual device that nothing stands on would stay for ever.
    if (known && !pci_) ::rte_dev_remove(info.device);
    ::rte_mempool_free(buffers_);
}

}  // namespace uib::net::dpdk

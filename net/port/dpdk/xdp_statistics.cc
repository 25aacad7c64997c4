#include "net/port/dpdk/xdp_statistics.h"

#include <linux/if_xdp.h>
#include <sys/socket.h>

namespace uib::net::dpdk {

void XdpStatistics::read(FramePortCounters& into) const {
    xdp_statistics sum{
        gone_.xdp_rx_dropped,   gone_.xdp_rx_invalid_descs,         gone_.xdp_tx_invalid_descs,
        gone_.xdp_rx_ring_full, gone_.xdp_rx_fill_ring_empty_descs, gone_.xdp_tx_ring_empty_descs};
    for (const int socket : sockets_) {
        xdp_statistics of{};  // kernels before 5.9 fill in the first half
        socklen_t length = sizeof of;
        if (::getsockopt(socket, SOL_XDP, XDP_STATISTICS, &of, &length) != 0) continue;
        sum.rx_dropped += of.rx_dropped;
        sum.rx_invalid_descs += of.rx_invalid_descs;
        sum.tx_invalid_descs += of.tx_invalid_descs;
        sum.rx_ring_full += of.rx_ring_full;
        sum.rx_fill_ring_empty_descs += of.rx_fill_ring_empty_descs;
        sum.tx_ring_empty_descs += of.tx_ring_empty_descs;
    }
    into.xdp_rx_dropped = sum.rx_dropped;
    into.xdp_rx_invalid_descs = sum.rx_invalid_descs;
    into.xdp_tx_invalid_descs = sum.tx_invalid_descs;
    into.xdp_rx_ring_full = sum.rx_ring_full;
    into.xdp_rx_fill_ring_empty_descs = sum.rx_fill_ring_empty_descs;
    into.xdp_tx_ring_empty_descs = sum.tx_ring_empty_descs;
}

void XdpStatistics::forget_sockets() {
    read(gone_);
    sockets_.clear();
}

}  // namespace uib::net::dpdk

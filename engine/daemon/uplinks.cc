#include "engine/daemon/uplinks.h"

#include <random>
#include <stdexcept>
#include <system_error>

#include "engine/daemon/log.h"
#include "net/encap/roce_uplink.h"
#include "net/port/port_module.h"

namespace uib::daemon {

namespace {

// Small enough that frames of a full buffer fit the receiver's ring (net/port/dpdk), in blocks of 64 bytes.
constexpr std::uint32_t kReceiveBlocks = 960;
constexpr std::uint32_t kSendBlocks = 4096;
/// With port 0; more has no switch, and how many this one will have is not known yet.
constexpr unsigned kSwitchPorts = 255;

}  // namespace

OpenedLinks open_links(const Config& config) {
    OpenedLinks opened{config.devices, {}};
    for (const verbs::LinkConfig& link : config.links) {
        net::IbTrunkOptions options;
        options.ether_type = link.frames.ether_type;
        options.peers = link.peers;
        options.slots = link.slots;
        options.identity = std::random_device{}() | std::uint64_t{std::random_device{}()} << 32 | 1;
        options.link.role = net::link::PortRole::kSwitch;
        options.link.input_ports = kSwitchPorts;
        options.link.receive_blocks = kReceiveBlocks;
        options.link.send_blocks = kSendBlocks;
        auto trunk = std::make_unique<net::IbTrunk>(net::open_frame_port(link.frames), options);
        if (trunk->mtu_code() == 0)
            throw std::runtime_error("the MTU of " + link.frames.interface +
                                     " is too small for any IB MTU (256 takes 384)");
        log_info("InfiniBand links on {} by {}, MTU {}", link.frames.interface, link.frames.driver,
                 128U << trunk->mtu_code());
        if (!trunk->frames().link_up())
            log_info("nobody is at the other end of {} yet", link.frames.interface);
        if (opened.trunks.empty() && !config.numbered) {
            const net::MacAddress mac = trunk->frames().mac();
            for (verbs::DeviceConfig& device : opened.devices)
                device.engine = static_cast<std::uint16_t>(mac[4] << 8 | mac[5]);
        }
        opened.trunks.push_back(std::move(trunk));
    }
    return opened;
}

void open_uplinks(verbs::Adapter& adapter, const std::vector<verbs::DeviceConfig>& devices) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
        if (!devices[i].port) continue;
        const verbs::PortConfig& port = *devices[i].port;
        auto uplink = std::make_unique<net::RoceUplink>(net::open_frame_port(port.frames),
                                                        port.frames.interface, port.vlan);
        if (uplink->mtu() == 0)
            log_warn("{}: the MTU of {} is too small for any path MTU", devices[i].name,
                     port.frames.interface);
        log_info("{}: RoCE v2 on {} by {}, path MTU {}", devices[i].name, port.frames.interface,
                 port.frames.driver, uplink->mtu());
        if (const int error = uplink->ingress_error(); error != 0)
            log_info(
                "{}: the kernel takes RoCE frames through its stack, too, which costs CPU time: no program "
                "at the ingress of {} ({}); it needs Linux 6.6, CAP_BPF and CAP_NET_ADMIN",
                devices[i].name, port.frames.interface, std::generic_category().message(error));
        adapter.attach_uplink(*adapter.devices()[i], std::move(uplink));
    }
}

}  // namespace uib::daemon

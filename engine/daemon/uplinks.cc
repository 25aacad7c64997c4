#include "engine/daemon/uplinks.h"

#include <spdlog/spdlog.h>

#include "net/encap/roce_uplink.h"
#include "net/port/port_module.h"

namespace uib::daemon {

void open_uplinks(verbs::Adapter& adapter, const std::vector<verbs::DeviceConfig>& devices) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
        if (!devices[i].port) continue;
        const verbs::PortConfig& port = *devices[i].port;
        auto uplink = std::make_unique<net::RoceUplink>(net::open_frame_port(port.frames),
                                                        port.frames.interface, port.vlan);
        if (uplink->mtu() == 0)
            spdlog::warn("{}: the MTU of {} is too small for any path MTU", devices[i].name,
                         port.frames.interface);
        spdlog::info("{}: RoCE v2 on {} by {}, path MTU {}", devices[i].name, port.frames.interface,
                     port.frames.driver, uplink->mtu());
        adapter.attach_uplink(*adapter.devices()[i], std::move(uplink));
    }
}

}  // namespace uib::daemon

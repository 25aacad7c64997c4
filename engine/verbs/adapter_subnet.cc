// The InfiniBand devices' part in subnet management: their nodes, the internal switch's, and the built-in
// subnet manager, which has given LIDs and active ports before the first turn.
#include <algorithm>

#include "engine/verbs/adapter.h"

namespace uib::verbs {

namespace {

constexpr std::uint64_t kSwitchGuid = 0x0255'4900'0001'0000ULL;  // behind the devices', so its LID is, too

constexpr std::uint32_t kEventLidChange = 11;   // IBV_EVENT_LID_CHANGE
constexpr std::uint32_t kEventPkeyChange = 12;  // IBV_EVENT_PKEY_CHANGE
constexpr std::uint32_t kEventSmChange = 13;    // IBV_EVENT_SM_CHANGE
constexpr std::uint32_t kEventGidChange = 18;   // IBV_EVENT_GID_CHANGE
constexpr std::uint32_t kEventPortActive = 9;   // IBV_EVENT_PORT_ACTIVE
constexpr std::uint32_t kEventPortError = 10;   // IBV_EVENT_PORT_ERR

}  // namespace

void Adapter::start_subnet(management::SubnetOptions options) {
    std::vector<management::EngineSubnet::AdapterConfig> adapters;
    for (const auto& device : devices_)
        if (!device->ethernet())
            adapters.push_back({device->port(), device->guid(), "uib " + device->name()});
    if (adapters.empty()) return;
    subnet_ = std::make_unique<management::EngineSubnet>(fabric_, kSwitchGuid, "uib switch", adapters);
    subnet_->on_change([this](std::size_t adapter) { follow_subnet(adapter); });
    // Without links out of the engine nothing can change that is not told.
    bool external = false;
    for (net::InternalSwitch::PortIndex port = 0; port < fabric_.ports(); ++port)
        external = external || fabric_.external(port);
    if (!external) options.sweep_interval = 0;
    subnet_->run_manager(options, now_);
    subnet_due_ = subnet_->manager()->next_deadline();
    for (std::size_t adapter = 0; adapter < subnet_->adapters(); ++adapter) follow_subnet(adapter);
    ports_changed_ = attention_ = false;  // there is nobody yet who could be told
}

void Adapter::tend_subnet() {
    subnet_->manager()->on_timer(now_);
    subnet_due_ = subnet_->manager()->next_deadline();
}

// Something at the port of an InfiniBand device has been set: the device shows it, its clients are told.
void Adapter::follow_subnet(std::size_t adapter) {
    const std::uint64_t guid = subnet_->adapter(adapter).node().info.node_guid;
    const auto found = std::find_if(devices_.begin(), devices_.end(), [&](const auto& device) {
        return !device->ethernet() && device->guid() == guid;
    });
    Device& device = **found;
    const SubnetPort before = device.subnet();
    const std::vector<net::Gid> gids = device.gids();
    const std::vector<std::uint16_t> pkeys = device.pkeys();
    const bool was_active = device.active();
    device.follow_subnet(subnet_->port_of(adapter));
    const SubnetPort& now = device.subnet();
    if (now == before && gids == device.gids() && pkeys == device.pkeys()) return;
    if (now.lid != before.lid) raise_port_event(device, kEventLidChange);
    if (now.sm_lid != before.sm_lid) raise_port_event(device, kEventSmChange);
    if (pkeys != device.pkeys()) raise_port_event(device, kEventPkeyChange);
    if (gids != device.gids()) raise_port_event(device, kEventGidChange);
    if (was_active != device.active())
        raise_port_event(device, device.active() ? kEventPortActive : kEventPortError);
    ports_changed_ = true;
    attention_ = true;
}

}  // namespace uib::verbs

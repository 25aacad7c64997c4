// The InfiniBand devices' part in subnet management: their nodes, the internal switches', the built-in subnet
// managers, which have given LIDs and active ports before the first turn, and the router between subnets.
//
// Each subnet has a switch of its own; a device has the same port index at all of them, and is up at its own.
#include <algorithm>
#include <stdexcept>

#include "engine/verbs/adapter.h"
#include "net/wire/gid.h"

namespace uib::verbs {

namespace {

// Added to the engine's first GUID: behind those of the devices, so that the LIDs are behind theirs, too.
constexpr std::uint64_t kSwitchGuid = 0x1'0000;
constexpr std::uint64_t kRouterGuid = 0x2'0000;

constexpr std::uint32_t kEventPortActive = 9;         // IBV_EVENT_PORT_ACTIVE
constexpr std::uint32_t kEventPortError = 10;         // IBV_EVENT_PORT_ERR
constexpr std::uint32_t kEventLidChange = 11;         // IBV_EVENT_LID_CHANGE
constexpr std::uint32_t kEventPkeyChange = 12;        // IBV_EVENT_PKEY_CHANGE
constexpr std::uint32_t kEventSmChange = 13;          // IBV_EVENT_SM_CHANGE
constexpr std::uint32_t kEventClientReregister = 17;  // IBV_EVENT_CLIENT_REREGISTER
constexpr std::uint32_t kEventGidChange = 18;         // IBV_EVENT_GID_CHANGE

}  // namespace

void Adapter::name_subnets(const std::vector<SubnetConfig>& subnets,
                           const std::vector<DeviceConfig>& devices) {
    for (const SubnetConfig& config : subnets) {
        Subnet subnet;
        subnet.config = config;
        subnet.fabric = &fabric_;
        if (!subnets_.empty()) {
            subnet.own_fabric = std::make_unique<net::InternalSwitch>();
            subnet.fabric = subnet.own_fabric.get();
            for (std::size_t port = 0; port < devices.size(); ++port) subnet.fabric->add_port();
        }
        subnets_.push_back(std::move(subnet));
    }
    if (subnets_.empty()) throw std::invalid_argument("no subnet");
}

std::uint8_t Adapter::subnet_named(const std::string& name) const {
    if (name.empty()) return 0;
    const auto found = std::find_if(subnets_.begin(), subnets_.end(),
                                    [&](const Subnet& subnet) { return subnet.config.name == name; });
    if (found == subnets_.end()) throw std::invalid_argument("there is no subnet " + name);
    return static_cast<std::uint8_t>(found - subnets_.begin());
}

void Adapter::start_subnets() {
    if (subnets_.size() > 1) {
        router_ = std::make_unique<net::Router>();
        for (Subnet& subnet : subnets_) {
            router_port_ = subnet.fabric->add_port();
            router_->add_interface(subnet.config.options.gid_prefix);
        }
    }
    add_external_ports();
    for (std::size_t number = 0; number < subnets_.size(); ++number) start_subnet(number);
    join_trunks();
    tend_subnets();
    port_events_.clear();
    ports_changed_ = attention_ = false;  // there is nobody yet who could be told
}

void Adapter::start_subnet(std::size_t number) {
    Subnet& subnet = subnets_[number];
    std::vector<management::EngineSubnet::AdapterConfig> adapters;
    for (const auto& device : devices_) {
        if (device->ethernet() || device->subnet_number() != number) continue;
        adapters.push_back({device->port(), device->guid(), "uib " + device->name()});
        subnet.devices.push_back(device.get());
    }
    if (adapters.empty()) return;
    const std::uint64_t first_guid = devices_.front()->limits().sys_image_guid;
    if (router_ != nullptr)
        adapters.push_back(
            {router_port_, first_guid + kRouterGuid + number, "uib router", management::kNodeIsRouter});
    subnet.nodes = std::make_unique<management::EngineSubnet>(
        *subnet.fabric, first_guid + kSwitchGuid + number, "uib switch", adapters);
    subnet.nodes->on_change([this, number](std::size_t adapter) { follow_subnet(number, adapter); });
    management::SubnetOptions options = subnet.config.options;
    // Without links out of the engine nothing can change that is not told.
    bool external = false;
    for (net::InternalSwitch::PortIndex port = 0; port < subnet.fabric->ports(); ++port)
        external = external || subnet.fabric->external(port);
    if (!external) options.sweep_interval = 0;
    if (number == 0)
        for (const auto& trunk : trunks_) subnet.nodes->limit_mtu(trunk->mtu_code());
    if (subnet.config.manager) subnet.nodes->run_manager(options, now_);
    for (std::size_t adapter = 0; adapter < subnet.nodes->adapters(); ++adapter)
        follow_subnet(number, adapter);
}

void Adapter::tend_subnets() {
    subnets_due_ = transport::kNever;
    for (Subnet& subnet : subnets_) {
        if (subnet.nodes == nullptr) continue;
        if (subnet.nodes->next_deadline() <= now_) subnet.nodes->on_timer(now_);
        subnets_due_ = std::min(subnets_due_, subnet.nodes->next_deadline());
    }
}

std::size_t Adapter::adapter_number(const Device& device) const {
    const std::vector<Device*>& devices = subnets_[device.subnet_number()].devices;
    return static_cast<std::size_t>(std::find(devices.begin(), devices.end(), &device) - devices.begin());
}

// Something at the port of an InfiniBand device has been set: the device shows it, its clients are told.
void Adapter::follow_subnet(std::size_t number, std::size_t adapter) {
    const Subnet& subnet = subnets_[number];
    const management::NodePort& port = subnet.nodes->port_of(adapter);
    if (number == 0 && general_ != nullptr) general_->memberships().port_changed(adapter, now_);
    if (adapter >= subnet.devices.size()) {
        router_->set_lid(number, static_cast<net::Lid>(port.info.lid));
        return;
    }
    Device& device = *subnet.devices[adapter];
    const SubnetPort before = device.subnet();
    const std::vector<net::Gid> gids = device.gids();
    const std::vector<std::uint16_t> pkeys = device.pkeys();
    const bool was_active = device.active();
    device.follow_subnet(port);
    const SubnetPort& now = device.subnet();
    if (now == before && gids == device.gids() && pkeys == device.pkeys()) return;
    if (router_ != nullptr) {
        for (const net::Gid& gid : gids) router_->set_port(number, gid, 0);
        for (const net::Gid& gid : device.gids())
            if (gid != net::Gid{}) router_->set_port(number, gid, device.lid());
    }
    if (now.lid != before.lid) note_port_event(device, kEventLidChange);
    if (now.sm_lid != before.sm_lid) note_port_event(device, kEventSmChange);
    if (now.reregistrations != before.reregistrations) note_port_event(device, kEventClientReregister);
    if (pkeys != device.pkeys()) note_port_event(device, kEventPkeyChange);
    if (gids != device.gids()) note_port_event(device, kEventGidChange);
    if (was_active != device.active())
        note_port_event(device, device.active() ? kEventPortActive : kEventPortError);
    ports_changed_ = true;
    attention_ = true;
}

// A packet to another subnet goes to the router (8.2.3). Programs that tell each other their LIDs, without a
// path record, cannot know the router's, so the port puts it there.
void Adapter::address_router(const Device& device, net::Packet& packet) const {
    if (device.ethernet() || net::is_multicast(packet.grh.dgid)) return;
    const std::uint64_t prefix = net::prefix_of(packet.grh.dgid);
    if (prefix == management::kDefaultGidPrefix || prefix == net::prefix_of(device.gids().front())) return;
    packet.lrh.dlid = router_->lid(device.subnet_number());
}

void Adapter::pass_router(const net::Packet& packet) {
    net::Packet onward = packet;
    const auto to = router_->forward(packet.subnet, onward);
    if (!to) return;
    onward.subnet = static_cast<std::uint8_t>(*to);
    deliver_unicast(onward);
}

}  // namespace uib::verbs

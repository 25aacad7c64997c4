// Ports with a way out of the engine: packets from outside, changes of their state, congestion notifications.
#include <array>

#include "engine/verbs/adapter.h"
#include "engine/verbs/qp.h"
#include "net/encap/roce_frame.h"
#include "net/wire/gid.h"

namespace uib::verbs {

namespace {

constexpr std::uint32_t kEventPortActive = 9;  // IBV_EVENT_PORT_ACTIVE
constexpr std::uint32_t kEventPortError = 10;  // IBV_EVENT_PORT_ERR
constexpr std::uint32_t kEventGidChange = 18;  // IBV_EVENT_GID_CHANGE
constexpr std::uint64_t kPort = 1;
/// Between two notifications of a port (A17.9.3 leaves the rate to the implementation; adapters use 50 us).
constexpr transport::Time kNotificationGap = 50'000;
constexpr std::array<std::byte, 16> kNotificationPayload{};  // reserved, zero

}  // namespace

void Adapter::attach_uplink(Device& device, std::unique_ptr<net::Uplink> uplink) {
    device.attach(std::move(uplink));
    outside_.push_back(&device);
    must_poll_ = must_poll_ || !device.uplink()->sleepable();
    if (device.ethernet()) ethernet_paths_.set_port(device.lid(), device.gids());
}

bool Adapter::receive_from_outside() {
    bool any = receive_from_links();
    for (Device* device : outside_) {
        net::Uplink& uplink = *device->uplink();
        OutsideSink sink(*this, *device);
        any |= uplink.receive(now_, sink);
        if (const std::uint8_t changes = uplink.take_changes(); changes != 0) follow(*device, changes);
    }
    return any;
}

void Adapter::OutsideSink::on_packet(net::Packet& packet) {
    adapter_.from_outside(device_, packet);
}

void Adapter::from_outside(Device& device, net::Packet& packet) {
    if (!device.active()) {
        ++fabric_.counters(device.port()).inactive_drops;
        return;
    }
    ++statistics_.packets;
    const bool multicast = net::is_multicast(packet.grh.dgid);
    packet.lrh.slid = 0;
    packet.lrh.dlid = multicast ? EthernetPaths::multicast_lid(packet.grh.dgid) : device.lid();
    if (packet.bth.opcode == net::kCnpOpcode) {
        ++device.congestion.received;
        return;
    }
    if (net::ecn_of(packet) == net::Ecn::kCongested && !multicast) notify_congestion(device, packet);
    pass_in(device, packet);
}

// A marked packet is answered to the queue pair that sent it, seldom enough not to add to the congestion.
void Adapter::notify_congestion(Device& device, const net::Packet& marked) {
    ++device.congestion.marked;
    const Qp* qp = qp_numbered(marked.bth.dest_qp);
    if (qp == nullptr || &qp->device() != &device || now_ < device.congestion.next_at) return;
    device.congestion.next_at = now_ + kNotificationGap;
    net::Packet out;
    out.has_grh = true;
    out.grh.sgid = marked.grh.dgid;
    out.grh.dgid = marked.grh.sgid;
    out.bth.opcode = net::kCnpOpcode;
    out.bth.becn = true;
    out.bth.pkey = marked.bth.pkey;
    out.bth.dest_qp = qp->init().service == transport::Service::kUd ? marked.deth.source_qp
                                                                    : qp->machine().parameters().dest_qp;
    out.payload = kNotificationPayload;
    ++device.congestion.sent;
    device.uplink()->send(out);
}

void Adapter::follow(Device& device, std::uint8_t changes) {
    if ((changes & net::kUplinkAddresses) != 0 && device.ethernet()) {
        device.follow_gids();
        ethernet_paths_.set_port(device.lid(), device.gids());
        if (taps_.capture != nullptr)
            taps_.capture->set_addresses(device.port(), device.mac(), device.gids());
        note_port_event(device, kEventGidChange);
    }
    if ((changes & net::kUplinkState) != 0)
        note_port_event(device, device.active() ? kEventPortActive : kEventPortError);
    ports_changed_ = true;
    attention_ = true;
}

void Adapter::raise_port_events() {
    for (const auto& [device, type] : port_events_)
        for (Client* client : clients_)
            if (client->device() == device) client->raise(type, kPort, nullptr);
    port_events_.clear();
}

void Adapter::end_outside_turn() {
    for (const auto& joint : joints_) joint->end_turn(now_);
    for (Device* device : outside_) device->uplink()->end_turn();
    if (taps_.faults != nullptr) {
        taps_.faults->end_turn();
        if (std::exchange(drop_faults_, false)) taps_.faults.reset();
    }
}

transport::Time Adapter::outside_deadline() const {
    transport::Time at = taps_.faults != nullptr ? taps_.faults->next_deadline() : transport::kNever;
    for (const Device* device : outside_) at = std::min(at, device->uplink()->next_deadline());
    for (const auto& joint : joints_) at = std::min(at, joint->next_deadline());
    return at;
}

void Adapter::watch_outside(bool asleep) {
    for (const auto& joint : joints_) joint->trunk().frames().watch(asleep);
    for (Device* device : outside_) device->uplink()->watch(asleep);
}

std::vector<int> Adapter::wake_descriptors() const {
    std::vector<int> all;
    for (const Device* device : outside_) {
        const std::vector<int> some = device->uplink()->wake_descriptors();
        all.insert(all.end(), some.begin(), some.end());
    }
    for (const auto& joint : joints_)
        if (const int descriptor = joint->trunk().frames().wake_descriptor(); descriptor >= 0)
            all.push_back(descriptor);
    return all;
}

// Taps.

std::uint32_t Adapter::add_fault(const net::FaultRule& rule) {
    if (taps_.faults == nullptr) taps_.faults = std::make_unique<net::FaultInjector>(taps_.totals);
    drop_faults_ = false;
    const std::uint32_t id = taps_.faults->add(rule);
    apply_link_faults();
    return id;
}

bool Adapter::remove_fault(std::uint32_t id) {
    if (taps_.faults == nullptr || !taps_.faults->remove(id)) return false;
    apply_link_faults();
    return true;
}

std::vector<net::FaultStatus> Adapter::faults() const {
    return taps_.faults == nullptr ? std::vector<net::FaultStatus>{} : taps_.faults->rules();
}

void Adapter::apply_link_faults() {
    for (auto& device : devices_) {
        const bool down = taps_.faults->link_down(device->port());
        if (down == device->link_down) continue;
        device->link_down = down;
        if (down) ++device->link_downed;
        if (device->ethernet()) {
            follow(*device, net::kUplinkState);
        } else {
            // The subnet manager is to see it, and to bring the port up again; the device follows.
            Subnet& subnet = subnets_[device->subnet_number()];
            subnet.nodes->set_adapter_link(adapter_number(*device), !down, now_);
        }
    }
    tend_subnets();
}

bool Adapter::start_capture(const net::CaptureOptions& options) {
    if (taps_.capture != nullptr) return false;
    std::vector<net::CapturePort> ports;
    ports.reserve(devices_.size());
    for (const auto& device : devices_)
        ports.push_back({device->name(), device->ethernet(), device->mac(), device->gids()});
    taps_.start(ports, options);
    for (const Device* device : outside_)
        uplink_taps_.push_back(std::make_unique<UplinkTap>(taps_, now_, device->port(), *device->uplink()));
    return true;
}

void Adapter::stop_capture() {
    uplink_taps_.clear();
    taps_.capture.reset();
}

}  // namespace uib::verbs

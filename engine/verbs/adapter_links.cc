// Links out of the engine: the trunks' ends are external ports of the first subnet's switch.
#include <stdexcept>

#include "engine/verbs/adapter.h"

namespace uib::verbs {

// Every subnet's switch has the same ports, of which only the first's lead anywhere.
void Adapter::add_external_ports() {
    for (const auto& trunk : trunks_) {
        for (std::size_t slot = 0; slot < trunk->slots(); ++slot) {
            for (Subnet& subnet : subnets_) {
                if (subnet.fabric == &fabric_) {
                    subnet.fabric->add_external_port();
                } else {
                    subnet.fabric->add_port();
                }
            }
        }
    }
}

void Adapter::join_trunks() {
    if (trunks_.empty()) return;
    if (subnet() == nullptr)
        throw std::invalid_argument("InfiniBand links need an InfiniBand device in the first subnet");
    std::uint32_t slots = 0;
    for (const auto& trunk : trunks_) slots += static_cast<std::uint32_t>(trunk->slots());
    auto first = static_cast<net::InternalSwitch::PortIndex>(fabric_.ports()) - slots;
    for (auto& trunk : trunks_) {
        const auto next = first + static_cast<net::InternalSwitch::PortIndex>(trunk->slots());
        must_poll_ = must_poll_ || trunk->frames().wake_descriptor() < 0;
        joints_.push_back(
            std::make_unique<management::TrunkJoint>(std::move(trunk), *subnet(), fabric_, first));
        first = next;
    }
    trunks_.clear();
    for (const auto& joint : joints_)
        for (const auto& other : joints_)
            if (joint != other) joint->meet(*other);
    start_general();
}

bool Adapter::receive_from_links() {
    bool any = false;
    for (const auto& joint : joints_)
        any |= joint->receive(now_, [this](net::InternalSwitch::PortIndex port, net::Packet& packet) {
            ++statistics_.packets;
            if (port < devices_.size()) enter(*devices_[port], packet);
        });
    // Answers and changed links may have moved the manager.
    if (!joints_.empty()) tend_subnets();
    return any;
}

void Adapter::send_through(std::uint32_t port, const net::Packet& packet) {
    for (const auto& joint : joints_)
        if (joint->owns(port)) joint->send(port, packet, now_);
}

}  // namespace uib::verbs

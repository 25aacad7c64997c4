#include "net/fabric/ethernet_switch.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace uib::net {

void EthernetSwitch::add_port(PortIndex port, const MacAddress& address) {
    if (is_multicast(address)) throw std::invalid_argument("not a unicast address");
    if (std::find(addresses_.begin(), addresses_.end(), address) != addresses_.end())
        throw std::invalid_argument("address is in use");
    addresses_.push_back(address);
    ports_.push_back(port);
}

std::span<const EthernetSwitch::PortIndex> EthernetSwitch::route(std::span<const std::byte> frame) const {
    if (frame.size() < kEthernetHeaderBytes) return {};
    MacAddress destination;
    std::memcpy(destination.data(), frame.data(), destination.size());
    const auto found = std::find(addresses_.begin(), addresses_.end(), destination);
    if (found == addresses_.end()) return ports_;
    return std::span(ports_).subspan(static_cast<std::size_t>(found - addresses_.begin()), 1);
}

}  // namespace uib::net

#include "engine/management/smi.h"

namespace uib::management {
namespace {

SmiResult send_out(std::uint8_t port, const SmiNode& node) {
    if (port == 0 || port > node.ports) return {};
    return {SmiStep::kSend, port};
}

/// The directed part is over; the rest, if there is any, is routed by LIDs, which only a switch can do.
SmiResult end_of_directed_part(SmpPacket& packet, const SmiNode& node, net::Lid to, net::Lid from) {
    if (to == net::kPermissiveLid) return {SmiStep::kDeliver, 0};
    if (!node.is_switch) return {};
    packet.dlid = to;
    packet.slid = from == net::kPermissiveLid ? node.lid : from;
    return {SmiStep::kRoute, 0};
}

SmiResult outbound_arrival(SmpPacket& packet, const SmiNode& node, std::uint8_t ingress) {
    net::DirectedRoute& route = packet.smp.route;
    if (route.hop_pointer == 0 && route.hop_count != 0) return {};
    if (route.hop_pointer < route.hop_count) {
        if (!node.is_switch) return {};
        route.return_path[route.hop_pointer++] = ingress;
        return send_out(route.initial_path[route.hop_pointer], node);
    }
    if (route.hop_pointer == route.hop_count) {
        if (route.hop_count != 0) route.return_path[route.hop_pointer] = ingress;
        ++route.hop_pointer;
        return end_of_directed_part(packet, node, route.dlid, route.slid);
    }
    return {route.hop_pointer == route.hop_count + 1 ? SmiStep::kDeliver : SmiStep::kDrop, 0};
}

SmiResult returning(SmpPacket& packet, const SmiNode& node, bool own) {
    net::DirectedRoute& route = packet.smp.route;
    if (route.hop_pointer > route.hop_count + 1) return {};
    if (route.hop_pointer == 0) return {own ? SmiStep::kDrop : SmiStep::kDeliver, 0};
    if (route.hop_pointer == 1) {
        route.hop_pointer = 0;
        return end_of_directed_part(packet, node, route.slid, route.dlid);
    }
    if (!own && !node.is_switch) return {};
    --route.hop_pointer;
    packet.slid = packet.dlid = net::kPermissiveLid;
    return send_out(route.return_path[route.hop_pointer], node);
}

}  // namespace

SmiResult smi_arrival(SmpPacket& packet, const SmiNode& node, std::uint8_t ingress) {
    if (packet.smp.route.hop_count >= net::kSmpPathEntries) return {};
    return packet.smp.route.returning ? returning(packet, node, false)
                                      : outbound_arrival(packet, node, ingress);
}

SmiResult smi_departure(SmpPacket& packet, const SmiNode& node) {
    net::DirectedRoute& route = packet.smp.route;
    if (route.hop_count >= net::kSmpPathEntries) return {};
    if (route.returning) {
        // A request whose last part was routed by LIDs goes back that way to where its directed part ended.
        if (route.dlid != net::kPermissiveLid && route.hop_pointer == route.hop_count + 1)
            return {SmiStep::kRoute, 0};
        return returning(packet, node, true);
    }
    if (route.hop_pointer != 0) return {};
    if (route.hop_count == 0) return outbound_arrival(packet, node, 0);
    route.hop_pointer = 1;
    return send_out(route.initial_path[1], node);
}

}  // namespace uib::management

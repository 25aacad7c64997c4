#include "engine/daemon/link_status.h"

#include <nlohmann/json.hpp>

#include "engine/daemon/status_text.h"

namespace uib::daemon {

namespace {

using net::link::LinkPort;
using nlohmann::ordered_json;

ordered_json receive_discards_json(const net::link::ReceiveDiscards& discards) {
    ordered_json shown;
    for (std::size_t i = 1; i < net::link::kPacketErrorCount; ++i)
        shown[net::link::name_of(static_cast<net::link::PacketError>(i))] = discards.checks.at(i);
    for (std::size_t i = 1; i < net::kLinkPacketErrorCount; ++i)
        shown[std::string("link_packet_") + net::name_of(static_cast<net::LinkPacketError>(i))] =
            discards.link_checks.at(i);
    shown["link_packet_vl"] = discards.link_vl;
    shown["bad_packets"] = discards.bad_packets;
    shown["marked_bad"] = discards.marked_bad;
    shown["state"] = discards.state;
    shown["buffer_overrun"] = discards.buffer_overrun;
    shown["raw_filter"] = discards.raw_filter;
    return shown;
}

ordered_json send_discards_json(const net::link::SendDiscards& discards) {
    return {{"state", discards.state},
            {"too_long", discards.too_long},
            {"vl_mapping", discards.vl_mapping},
            {"vl15_form", discards.vl15_form},
            {"raw_filter", discards.raw_filter},
            {"hoq_life", discards.hoq_life},
            {"packet_life", discards.packet_life},
            {"vl_stalled", discards.vl_stalled}};
}

/// What flow control is at, a data VL a member: block counts modulo 4096, and what waits.
ordered_json lanes_json(const LinkPort& link) {
    ordered_json shown = ordered_json::array();
    for (unsigned lane = 0; lane < link.operational_vls(); ++lane) {
        const auto vl = static_cast<std::uint8_t>(lane);
        shown.push_back({{"fctbs", link.send_credits(vl).sent()},
                         {"credit_limit", link.send_credits(vl).limit()},
                         {"abr", link.receive_credits(vl).received()},
                         {"queued_packets", link.queued_packets(vl)},
                         {"free_receive_blocks", link.free_receive_blocks(vl)}});
    }
    return shown;
}

ordered_json link_json(const net::IbTrunk& trunk, std::size_t slot, std::uint32_t switch_port) {
    const LinkPort& link = trunk.link(slot);
    ordered_json counters;
    for (std::size_t i = 0; i < net::link::kPortCounterCount; ++i) {
        const auto counter = static_cast<net::link::PortCounter>(i);
        counters[net::link::name_of(counter)] = link.counters().total(counter);
    }
    const auto peer = trunk.peer(slot);
    return {{"switch_port", switch_port},
            {"peer", peer ? ordered_json(mac_text(*peer)) : ordered_json(nullptr)},
            {"state", net::link::name_of(link.state())},
            {"counters", counters},
            {"receive_discards", receive_discards_json(link.receive_discards())},
            {"send_discards", send_discards_json(link.send_discards())},
            {"lanes", lanes_json(link)}};
}

ordered_json frames_json(const net::FramePortCounters& port, const net::IbTrunkCounters& trunk) {
    return {{"tx_frames", port.tx_frames},
            {"rx_frames", port.rx_frames},
            {"rx_own", port.rx_own},
            {"rx_truncated", port.rx_truncated},
            {"rx_missed", port.rx_missed},
            {"rx_errors", port.rx_errors},
            {"tx_refused", port.tx_refused},
            {"tx_too_long", port.tx_too_long},
            {"tx_no_buffer", trunk.tx_no_buffer},
            {"rx_foreign", trunk.rx_foreign},
            {"rx_other_host", trunk.rx_other_host},
            {"rx_malformed", trunk.rx_malformed},
            {"rx_no_slot", trunk.rx_no_slot},
            {"rx_unknown_peer", trunk.rx_unknown_peer},
            {"mtu_mismatch", trunk.mtu_mismatch}};
}

ordered_json forwarding_json(const management::TrunkJoint::Counters& counters) {
    return {{"icrc", counters.icrc_errors},  {"malformed", counters.malformed},
            {"no_route", counters.no_route}, {"way_back", counters.way_back},
            {"bad_smp", counters.bad_smp},   {"discarded", counters.discarded},
            {"waited", counters.waited}};
}

}  // namespace

ordered_json links_json(const verbs::Adapter& adapter) {
    ordered_json all = ordered_json::array();
    for (const auto& joint : adapter.links()) {
        net::IbTrunk& trunk = joint->trunk();
        ordered_json links = ordered_json::array();
        // Slots that nobody has taken yet say nothing.
        for (std::size_t slot = 0; slot < trunk.slots(); ++slot)
            if (trunk.peer(slot))
                links.push_back(
                    link_json(trunk, slot, joint->first() + static_cast<std::uint32_t>(slot) + 1));
        all.push_back({{"mac", mac_text(trunk.frames().mac())},
                       {"mtu", 128U << trunk.mtu_code()},
                       {"frames", frames_json(trunk.frames().counters(), trunk.counters())},
                       {"forwarding", forwarding_json(joint->counters())},
                       {"links", links}});
    }
    return all;
}

}  // namespace uib::daemon

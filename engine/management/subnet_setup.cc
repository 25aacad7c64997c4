// The master sets what the nodes of its subnet are to hold. Only what differs from what they show is set.
#include <algorithm>
#include <utility>

#include "engine/management/subnet_manager.h"
#include "net/wire/bytes.h"

namespace uib::management {
namespace {

using Block = std::array<std::byte, net::kSmpDataBytes>;

constexpr std::uint16_t kDefaultPkey = 0xFFFF;
constexpr std::uint8_t kEvenWeight = 64;  ///< 4096 bytes: a whole packet of the largest MTU each turn

/// The components that are only told, or that 0 leaves as they are, out of a comparison.
PortInfo comparable(PortInfo info) {
    info.port_state = info.physical_state = info.link_down_default = 0;
    info.link_width_enabled = info.link_speed_enabled = 0;
    info.client_reregister = info.local_port = 0;
    info.mkey_violations = info.pkey_violations = info.qkey_violations = 0;
    return info;
}

Block encoded(const PortInfo& info) {
    Block data{};
    encode(info, data);
    return data;
}

}  // namespace

void SubnetManager::identify() {
    phase_ = Phase::kIdentify;
    lids_.assign(topology_, options_.lmc);
    forget_absent_members();
    groups_changed_ = false;
    routes_ = compute_routes(topology_, lids_, options_.lmc, members());
    for (NodeIndex index = 0; index < topology_.nodes().size(); ++index) {
        const NodeRecord& node = topology_.node(index);
        note_presence(node);
        if (node.is_switch()) identify_switch(index);
        for (unsigned port = 0; port < node.ports.size(); ++port)
            if (node.ports[port].known) identify_port(index, port);
    }
    present_.clear();
    for (const NodeRecord& node : topology_.nodes()) present_.insert(node.guid());
}

// One that has started anew, or that was away, holds what nobody here knows, and has registered with nobody
// or somebody else.
void SubnetManager::note_presence(const NodeRecord& node) {
    if (!fresh_.contains(node.guid()) && present_.contains(node.guid())) return;
    programmed_.erase(node.guid());
    std::erase_if(lanes_set_, [&](const auto& entry) { return entry.first == node.guid(); });
    if (!node.is_switch()) unregistered_.insert(node.guid());
}

void SubnetManager::identify_switch(NodeIndex index) {
    const NodeRecord& node = topology_.node(index);
    SwitchInfo wanted = node.switch_info;
    const std::vector<net::PortNumber>& linear = routes_[index].linear;
    wanted.linear_top = linear.empty() ? 0 : linear.size() - 1;
    wanted.default_multicast_primary = wanted.default_multicast_other = net::kNoRoute;
    wanted.port_state_change = 0;
    SwitchInfo held = node.switch_info;
    held.port_state_change = 0;
    Block data{}, shown{};
    encode(wanted, data);
    encode(held, shown);
    if (data != shown)
        requests_.set(node.path, AttributeId::kSwitchInfo, 0, data, checked([](const net::Smp*) {}));
}

void SubnetManager::identify_port(NodeIndex index, unsigned port) {
    const NodeRecord& node = topology_.node(index);
    const PortRecord& record = node.ports[port];
    PortInfo wanted = record.info;
    if (port == node.end_port()) {
        wanted.lid = lids_.lid(node.guid());
        wanted.lmc = node.is_switch() ? 0 : options_.lmc;
        wanted.master_sm_lid = lids_.lid(guid_);
        wanted.gid_prefix = options_.gid_prefix;
    }
    if (record.linked() && topology_.node(record.peer).ports[record.peer_port].known) {
        const PortInfo& peer = topology_.node(record.peer).ports[record.peer_port].info;
        wanted.neighbor_mtu = std::min(record.info.mtu_cap, peer.mtu_cap);
        wanted.operational_vls = std::min(record.info.vl_cap, peer.vl_cap);
    } else if (port != node.end_port()) {
        return;
    }
    if (!node.is_switch() && record.info.master_sm_lid != wanted.master_sm_lid)
        unregistered_.insert(node.guid());
    const bool can_register = (record.info.capability_mask & kIsClientReregistration) != 0;
    wanted.client_reregister = can_register && unregistered_.contains(node.guid()) ? 1 : 0;
    if (wanted.client_reregister == 0 && encoded(comparable(wanted)) == encoded(comparable(record.info)))
        return;
    set_port(index, port, wanted, kStateNoChange);
}

void SubnetManager::set_port(NodeIndex index, unsigned port, const PortInfo& wanted, Number state) {
    PortInfo sent = comparable(wanted);
    sent.port_state = state;
    // 0 would clear them.
    sent.mkey_violations = wanted.mkey_violations;
    sent.pkey_violations = wanted.pkey_violations;
    sent.qkey_violations = wanted.qkey_violations;
    sent.client_reregister = wanted.client_reregister;
    requests_.set(topology_.node(index).path, AttributeId::kPortInfo, port, encoded(sent),
                  checked([=, this](const net::Smp* reply) {
                      PortInfo& held = topology_.node(index).ports[port].info;
                      held = decode_port_info(reply->data);
                      held.client_reregister = 0;
                      if (sent.client_reregister != 0) unregistered_.erase(topology_.node(index).guid());
                  }));
}

void SubnetManager::set_states(Number from, Number to) {
    for (NodeIndex index = 0; index < topology_.nodes().size(); ++index) {
        const NodeRecord& node = topology_.node(index);
        for (unsigned port = 1; port < node.ports.size(); ++port) {
            const PortRecord& record = node.ports[port];
            if (record.known && record.linked() && record.info.port_state == from)
                set_port(index, port, record.info, to);
        }
    }
}

void SubnetManager::set_tables() {
    for (NodeIndex index = 0; index < topology_.nodes().size(); ++index) {
        const NodeRecord& node = topology_.node(index);
        if (node.is_switch()) {
            set_linear(index, routes_[index]);
            set_multicast(index, routes_[index]);
        } else if (fresh_.contains(node.guid())) {
            set_pkeys(index);
        }
        for (unsigned port = 1; port < node.ports.size(); ++port)
            if (node.ports[port].linked()) set_virtual_lanes(index, port);
    }
}

void SubnetManager::set_block(NodeIndex index, AttributeId attribute, std::uint32_t modifier,
                              const Block& block, std::map<std::uint32_t, Block>& held) {
    const auto found = held.find(modifier);
    if (found != held.end() && found->second == block) return;
    held[modifier] = block;
    const std::uint64_t guid = topology_.node(index).guid();
    requests_.set(topology_.node(index).path, attribute, modifier, block, [=, this](const net::Smp* reply) {
        if (reply != nullptr && reply->header.status == 0) return;
        incomplete_ = true;
        // What the block holds is unknown.
        Programmed& programmed = programmed_[guid];
        (attribute == AttributeId::kLinearForwardingTable ? programmed.linear : programmed.multicast)
            .erase(modifier);
    });
}

void SubnetManager::set_linear(NodeIndex index, const SwitchRoutes& routes) {
    Programmed& programmed = programmed_[topology_.node(index).guid()];
    for (std::size_t first = 0; first < routes.linear.size(); first += net::kLinearBlock) {
        Block block;
        block.fill(std::byte{net::kNoRoute});
        for (std::size_t i = 0; i < net::kLinearBlock && first + i < routes.linear.size(); ++i)
            block[i] = std::byte{routes.linear[first + i]};
        set_block(index, AttributeId::kLinearForwardingTable,
                  static_cast<std::uint32_t>(first / net::kLinearBlock), block, programmed.linear);
    }
}

void SubnetManager::set_multicast(NodeIndex index, const SwitchRoutes& routes) {
    constexpr unsigned kPositionShift = 28;
    const NodeRecord& node = topology_.node(index);
    Programmed& programmed = programmed_[node.guid()];
    std::map<std::uint32_t, Block> wanted;
    // All of the table: a new master does not know what another one left there.
    const auto positions = static_cast<unsigned>(node.info.ports / net::kPortsPerPosition) + 1;
    for (unsigned position = 0; position < positions; ++position)
        for (std::uint32_t block = 0; block * net::kMulticastBlock < node.switch_info.multicast_cap; ++block)
            wanted[block | position << kPositionShift] = {};
    for (const auto& [mlid, mask] : routes.multicast) {
        const auto at = static_cast<std::size_t>(mlid - net::kMulticastLidFirst);
        for (unsigned position = 0; position < positions; ++position) {
            std::uint16_t bits = 0;
            for (unsigned bit = 0; bit < net::kPortsPerPosition; ++bit)
                if (mask.test(std::size_t{position} * net::kPortsPerPosition + bit))
                    bits = static_cast<std::uint16_t>(bits | 1U << bit);
            const auto modifier =
                static_cast<std::uint32_t>(at / net::kMulticastBlock | position << kPositionShift);
            net::store_be<2>(&wanted[modifier][at % net::kMulticastBlock * 2], bits);
        }
    }
    for (const auto& [modifier, block] : wanted)
        set_block(index, AttributeId::kMulticastForwardingTable, modifier, block, programmed.multicast);
}

// SL n takes VL n modulo their number; all VLs have the same weight in the low table, none in the high one.
void SubnetManager::set_virtual_lanes(NodeIndex index, unsigned port) {
    const NodeRecord& node = topology_.node(index);
    const unsigned lanes = data_vls(node.ports[port].info.operational_vls);
    if (lanes <= 1 || !lanes_set_.insert({node.guid(), port}).second) return;
    const auto set = [&](AttributeId attribute, std::uint32_t modifier, const Block& block) {
        const std::uint64_t guid = node.guid();
        requests_.set(node.path, attribute, modifier, block, [=, this](const net::Smp* reply) {
            if (reply != nullptr && reply->header.status == 0) return;
            incomplete_ = true;
            lanes_set_.erase({guid, port});
        });
    };
    SlToVl map{};
    for (unsigned sl = 0; sl < map.size(); ++sl) map[sl] = static_cast<std::uint8_t>(sl % lanes);
    Block mapping{};
    encode(map, mapping);
    if (node.is_switch()) {
        for (unsigned in = 0; in < node.ports.size(); ++in)
            set(AttributeId::kSlToVlMappingTable, in << 8 | port, mapping);
    } else {
        set(AttributeId::kSlToVlMappingTable, 0, mapping);
    }
    VlArbitrationBlock low{};
    for (unsigned vl = 0; vl < lanes; ++vl) low[vl] = {static_cast<std::uint8_t>(vl), kEvenWeight};
    Block weights{};
    encode(low, weights);
    const std::uint32_t out = node.is_switch() ? port : 0;
    set(AttributeId::kVlArbitrationTable, 1U << 16 | out, weights);
    for (const std::uint32_t block : {2U, 3U, 4U})
        set(AttributeId::kVlArbitrationTable, block << 16 | out, Block{});
}

// A port that is new gets the default partition if it does not have it.
void SubnetManager::set_pkeys(NodeIndex index) {
    const DirectedPath path = topology_.node(index).path;
    requests_.get(path, AttributeId::kPkeyTable, 0, checked([=, this](const net::Smp* reply) {
                      for (std::size_t i = 0; i < kPkeysInBlock; ++i)
                          if (net::load_be<std::uint16_t>(&reply->data[i * 2]) == kDefaultPkey) return;
                      Block block = reply->data;
                      net::store_be<2>(block.data(), kDefaultPkey);
                      requests_.set(path, AttributeId::kPkeyTable, 0, block, checked([](const net::Smp*) {}));
                  }));
}

}  // namespace uib::management

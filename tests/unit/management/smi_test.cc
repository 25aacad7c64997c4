// Directed routes by hand, and through switches that are joined (IBA 14.2.2; ids of
// conformance-management.tsv).
#include "engine/management/smi.h"

#include <gtest/gtest.h>

#include <deque>

#include "engine/management/engine_subnet.h"

namespace uib::management {
namespace {

constexpr SmiNode kSwitch{true, 8, 0x30};
constexpr SmiNode kAdapter{false, 1, 0};

SmpPacket outbound(std::uint8_t pointer, std::uint8_t count) {
    SmpPacket packet;
    packet.smp.header.management_class = net::kClassSubnDirected;
    packet.smp.route.hop_pointer = pointer;
    packet.smp.route.hop_count = count;
    packet.smp.route.initial_path[1] = 1;
    packet.smp.route.initial_path[2] = 5;
    packet.smp.route.initial_path[3] = 7;
    return packet;
}

SmpPacket inbound(std::uint8_t pointer, std::uint8_t count) {
    SmpPacket packet = outbound(pointer, count);
    packet.smp.route.returning = true;
    packet.smp.route.return_path[1] = 1;
    packet.smp.route.return_path[2] = 3;
    packet.smp.route.return_path[3] = 6;
    return packet;
}

TEST(Smi, MX_7_the_originator_sends_through_the_first_port_of_the_path) {
    SmpPacket packet = outbound(0, 2);
    const SmiResult result = smi_departure(packet, kAdapter);
    EXPECT_EQ(result.step, SmiStep::kSend);
    EXPECT_EQ(result.port, 1);
    EXPECT_EQ(packet.smp.route.hop_pointer, 1);
    SmpPacket local = outbound(0, 0);
    EXPECT_EQ(smi_departure(local, kAdapter).step, SmiStep::kDeliver);
    EXPECT_EQ(local.smp.route.hop_pointer, 1);
    SmpPacket received = outbound(0, 2);
    EXPECT_EQ(smi_arrival(received, kSwitch, 4).step, SmiStep::kDrop);
    SmpPacket started = outbound(1, 2);
    EXPECT_EQ(smi_departure(started, kAdapter).step, SmiStep::kDrop);
}

TEST(Smi, MX_8_a_switch_passes_on_and_notes_the_way_back) {
    SmpPacket packet = outbound(1, 3);
    const SmiResult result = smi_arrival(packet, kSwitch, 4);
    EXPECT_EQ(result.step, SmiStep::kSend);
    EXPECT_EQ(result.port, 5);
    EXPECT_EQ(packet.smp.route.hop_pointer, 2);
    EXPECT_EQ(packet.smp.route.return_path[1], 4);
    for (const std::uint8_t port : {0, 9, 255}) {
        SmpPacket bad = outbound(1, 3);
        bad.smp.route.initial_path[2] = port;
        EXPECT_EQ(smi_arrival(bad, kSwitch, 4).step, SmiStep::kDrop) << unsigned{port};
    }
    SmpPacket at_adapter = outbound(1, 3);
    EXPECT_EQ(smi_arrival(at_adapter, kAdapter, 1).step, SmiStep::kDrop);
}

TEST(Smi, MX_9_at_the_end_it_is_delivered_or_goes_on_by_lid) {
    SmpPacket packet = outbound(3, 3);
    EXPECT_EQ(smi_arrival(packet, kAdapter, 1).step, SmiStep::kDeliver);
    EXPECT_EQ(packet.smp.route.return_path[3], 1);
    EXPECT_EQ(packet.smp.route.hop_pointer, 4);
    SmpPacket routed = outbound(3, 3);
    routed.smp.route.dlid = 0x77;
    EXPECT_EQ(smi_arrival(routed, kSwitch, 2).step, SmiStep::kRoute);
    EXPECT_EQ(routed.dlid, 0x77);
    EXPECT_EQ(routed.slid, kSwitch.lid);
    SmpPacket from_lid = outbound(3, 3);
    from_lid.smp.route.dlid = 0x77;
    from_lid.smp.route.slid = 0x12;
    EXPECT_EQ(smi_arrival(from_lid, kSwitch, 2).step, SmiStep::kRoute);
    EXPECT_EQ(from_lid.slid, 0x12);
    SmpPacket at_adapter = outbound(3, 3);
    at_adapter.smp.route.dlid = 0x77;
    EXPECT_EQ(smi_arrival(at_adapter, kAdapter, 1).step, SmiStep::kDrop);
    SmpPacket there = outbound(4, 3);
    EXPECT_EQ(smi_arrival(there, kAdapter, 1).step, SmiStep::kDeliver);
    SmpPacket beyond = outbound(5, 3);
    EXPECT_EQ(smi_arrival(beyond, kAdapter, 1).step, SmiStep::kDrop);
}

TEST(Smi, MX_10_the_answer_takes_the_return_path) {
    SmpPacket answer = inbound(4, 3);
    SmiResult result = smi_departure(answer, kSwitch);
    EXPECT_EQ(result.step, SmiStep::kSend);
    EXPECT_EQ(result.port, 6);
    EXPECT_EQ(answer.smp.route.hop_pointer, 3);
    result = smi_arrival(answer, kSwitch, 2);
    EXPECT_EQ(result.step, SmiStep::kSend);
    EXPECT_EQ(result.port, 3);
    result = smi_arrival(answer, kSwitch, 2);
    EXPECT_EQ(result.port, 1);
    EXPECT_EQ(answer.smp.route.hop_pointer, 1);
    EXPECT_EQ(smi_arrival(answer, kAdapter, 1).step, SmiStep::kDeliver);
    EXPECT_EQ(answer.smp.route.hop_pointer, 0);
    SmpPacket to_lid = inbound(1, 3);
    to_lid.smp.route.slid = 0x44;
    EXPECT_EQ(smi_arrival(to_lid, kSwitch, 1).step, SmiStep::kRoute);
    EXPECT_EQ(to_lid.dlid, 0x44);
    SmpPacket at_manager = inbound(0, 3);
    EXPECT_EQ(smi_arrival(at_manager, kAdapter, 1).step, SmiStep::kDeliver);
    SmpPacket at_adapter = inbound(2, 3);
    EXPECT_EQ(smi_arrival(at_adapter, kAdapter, 1).step, SmiStep::kDrop);
    SmpPacket beyond = inbound(5, 3);
    EXPECT_EQ(smi_arrival(beyond, kSwitch, 1).step, SmiStep::kDrop);
}

// Two engines: adapter - switch - switch - adapter, the link between the switches without delay.
class TwoSwitches : public ::testing::Test, public SmpManager {
  protected:
    void SetUp() override {
        for (unsigned i = 0; i < 2; ++i) {
            fabrics_[i].add_port();
            fabrics_[i].add_external_port();
            subnets_[i] = std::make_unique<EngineSubnet>(
                fabrics_[i], 0x100U + i, "switch",
                std::vector<EngineSubnet::AdapterConfig>{{0, 0x10U + i, "adapter"}});
        }
        links_[0] = std::make_unique<InternalSmpLink>(subnets_[1]->switch_node(), 2);
        links_[1] = std::make_unique<InternalSmpLink>(subnets_[0]->switch_node(), 2);
        for (unsigned i = 0; i < 2; ++i) subnets_[i]->connect(1, links_[i].get());
        for (unsigned i = 0; i < 2; ++i) subnets_[i]->set_external_link(1, true, 0);
        subnets_[0]->adapter(0).run_manager(1, this);
    }
    void TearDown() override { subnets_[0]->adapter(0).run_manager(1, nullptr); }

    void on_response(const SmpPacket& packet, Time) override { responses_.push_back(packet); }
    net::Smp on_sm_info(const net::Smp& request, Time) override { return request; }
    bool on_trap(const net::Smp&, Time) override { return false; }

    SmpPacket get(AttributeId attribute, const DirectedPath& path) {
        SmpPacket packet;
        packet.smp.header.management_class = net::kClassSubnDirected;
        packet.smp.header.method = net::MadMethod::kGet;
        packet.smp.header.attribute_id = static_cast<std::uint16_t>(attribute);
        packet.smp.header.transaction_id = 0xABCD;
        packet.smp.route.hop_count = static_cast<std::uint8_t>(path.size());
        std::copy(path.begin(), path.end(), packet.smp.route.initial_path.begin() + 1);
        return packet;
    }
    SmpNode& manager_node() { return subnets_[0]->adapter(0); }

    net::InternalSwitch fabrics_[2];
    std::unique_ptr<EngineSubnet> subnets_[2];
    std::unique_ptr<SmpLink> links_[2];
    std::deque<SmpPacket> responses_;
};

TEST_F(TwoSwitches, M_15_node_info_is_read_across_two_switches_without_lids) {
    manager_node().originate(1, get(AttributeId::kNodeInfo, {1, 2, 1}), 0);
    ASSERT_EQ(responses_.size(), 1U);
    const NodeInfo info = decode_node_info(responses_[0].smp.data);
    EXPECT_EQ(info.node_guid, 0x11U);
    EXPECT_EQ(info.type, kNodeIsCa);
    EXPECT_EQ(info.local_port, 1U);
    EXPECT_EQ(responses_[0].smp.header.transaction_id, 0xABCDU);
    EXPECT_EQ(responses_[0].smp.route.hop_pointer, 0);
    EXPECT_EQ(responses_[0].smp.route.return_path[2], 2);
    EXPECT_EQ(responses_[0].smp.route.return_path[3], 1);
    EXPECT_EQ(responses_[0].dlid, net::kPermissiveLid);
}

TEST_F(TwoSwitches, MX_16_node_info_tells_the_port_that_was_asked_through) {
    manager_node().originate(1, get(AttributeId::kNodeInfo, {1}), 0);
    manager_node().originate(1, get(AttributeId::kNodeInfo, {1, 2}), 0);
    manager_node().originate(1, get(AttributeId::kNodeInfo, {}), 0);
    ASSERT_EQ(responses_.size(), 3U);
    EXPECT_EQ(decode_node_info(responses_[0].smp.data).local_port, 1U);
    EXPECT_EQ(decode_node_info(responses_[1].smp.data).local_port, 2U);
    EXPECT_EQ(decode_node_info(responses_[1].smp.data).port_guid, 0x101U);
    EXPECT_EQ(decode_node_info(responses_[2].smp.data).node_guid, 0x10U);
}

TEST_F(TwoSwitches, MX_11_nothing_passes_a_port_that_is_down) {
    subnets_[0]->set_external_link(1, false, 0);
    manager_node().originate(1, get(AttributeId::kNodeInfo, {1, 2}), 0);
    EXPECT_TRUE(responses_.empty());
    EXPECT_EQ(subnets_[0]->switch_node().drops().link_down, 1U);
}

TEST_F(TwoSwitches, M_20_and_M_28_lid_routed_requests_are_forwarded_and_answered_with_exchanged_lids) {
    // By hand: manager LID 1, switches 2 and 3, far adapter 4.
    subnets_[0]->adapter(0).node().port(1).info.lid = 1;
    subnets_[0]->switch_node().node().port(0).info.lid = 2;
    subnets_[1]->switch_node().node().port(0).info.lid = 3;
    subnets_[1]->adapter(0).node().port(1).info.lid = 4;
    const net::PortNumber ways[2][5] = {{net::kNoRoute, 1, 0, 2, 2}, {net::kNoRoute, 2, 2, 0, 1}};
    for (unsigned i = 0; i < 2; ++i) {
        std::array<net::PortNumber, net::kLinearBlock> block{};
        block.fill(net::kNoRoute);
        std::copy(std::begin(ways[i]), std::end(ways[i]), block.begin());
        fabrics_[i].set_linear_block(0, block);
        fabrics_[i].set_top(4);
        subnets_[i]->switch_node().node().switch_info.linear_top = 4;
    }
    for (const net::Lid to : {2, 3, 4}) {
        SmpPacket packet = get(AttributeId::kNodeInfo, {});
        packet.smp.header.management_class = net::kClassSubnLidRouted;
        packet.slid = 1;
        packet.dlid = to;
        manager_node().originate(1, packet, 0);
        ASSERT_EQ(responses_.size(), 1U) << to;
        EXPECT_EQ(responses_[0].slid, to);
        EXPECT_EQ(responses_[0].dlid, 1);
        responses_.clear();
    }
    SmpPacket lost = get(AttributeId::kNodeInfo, {});
    lost.smp.header.management_class = net::kClassSubnLidRouted;
    lost.slid = 1;
    lost.dlid = 5;
    manager_node().originate(1, lost, 0);
    EXPECT_TRUE(responses_.empty());
    EXPECT_EQ(subnets_[0]->switch_node().drops().lid, 1U);
    // A directed part to the first switch, then by LID to the far adapter, and back.
    SmpPacket mixed = get(AttributeId::kNodeInfo, {1});
    mixed.smp.route.dlid = 4;
    manager_node().originate(1, mixed, 0);
    ASSERT_EQ(responses_.size(), 1U);
    EXPECT_EQ(decode_node_info(responses_[0].smp.data).node_guid, 0x11U);
}

TEST_F(TwoSwitches, NothingIsRoutedToLidsAboveTheTop) {
    subnets_[1]->adapter(0).node().port(1).info.lid = 9;
    for (unsigned i = 0; i < 2; ++i) {
        std::array<net::PortNumber, net::kLinearBlock> block{};
        block.fill(net::kNoRoute);
        block[1] = i == 0 ? 1 : 2;
        block[9] = i == 0 ? 2 : 1;
        fabrics_[i].set_linear_block(0, block);
        fabrics_[i].set_top(9);
    }
    subnets_[0]->adapter(0).node().port(1).info.lid = 1;
    SmpPacket packet = get(AttributeId::kNodeInfo, {});
    packet.smp.header.management_class = net::kClassSubnLidRouted;
    packet.slid = 1;
    packet.dlid = 9;
    for (const Number top : {8U, 9U}) {
        for (const auto& subnet : subnets_) subnet->switch_node().node().switch_info.linear_top = top;
        manager_node().originate(1, packet, 0);
        EXPECT_EQ(responses_.size(), top == 9 ? 1U : 0U);
    }
    EXPECT_EQ(subnets_[0]->switch_node().drops().lid, 1U);
}

// 18.2.4.3: each switch has the other's port for a LID that nobody has.
TEST_F(TwoSwitches, WhatIsRoutedByLidDoesNotGoBackWhereItCameFrom) {
    for (unsigned i = 0; i < 2; ++i) {
        std::array<net::PortNumber, net::kLinearBlock> block{};
        block.fill(net::kNoRoute);
        block[9] = 2;
        fabrics_[i].set_linear_block(0, block);
        fabrics_[i].set_top(20);
        subnets_[i]->switch_node().node().switch_info.linear_top = 20;
    }
    SmpPacket packet = get(AttributeId::kNodeInfo, {});
    packet.smp.header.management_class = net::kClassSubnLidRouted;
    packet.slid = 1;
    packet.dlid = 9;
    manager_node().originate(1, packet, 0);
    EXPECT_EQ(subnets_[1]->switch_node().drops().lid, 1U);
    // A directed route SMP whose last part is by LID, the same.
    SmpPacket mixed = get(AttributeId::kNodeInfo, {1});
    mixed.smp.route.dlid = 9;
    manager_node().originate(1, mixed, 0);
    EXPECT_EQ(subnets_[1]->switch_node().drops().lid, 2U);
    EXPECT_EQ(subnets_[0]->switch_node().drops().lid, 0U);
    EXPECT_TRUE(responses_.empty());
}

TEST_F(TwoSwitches, M_21_sm_info_goes_to_the_manager_where_there_is_one) {
    manager_node().originate(1, get(AttributeId::kSmInfo, {1, 2, 1}), 0);
    ASSERT_EQ(responses_.size(), 1U);
    EXPECT_EQ(responses_[0].smp.header.status, net::kMadAttributeNotSupported);
}

}  // namespace
}  // namespace uib::management

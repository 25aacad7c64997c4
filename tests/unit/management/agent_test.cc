// The agent's answers, by ids of conformance-management.tsv.
#include "engine/management/agent.h"

#include <gtest/gtest.h>

#include <array>

#include "engine/management/management_key.h"

namespace uib::management {
namespace {

using Bytes = std::array<std::byte, net::kSmpDataBytes>;
constexpr Time kSecond = 1'000'000'000;

class Agent : public ::testing::Test {
  protected:
    Agent() {
        for (int i = 0; i < 4; ++i) fabric_.add_external_port();
        ca_.set_link(1, true);
        for (unsigned port = 1; port <= 4; ++port) switch_.set_link(port, true);
    }

    static net::Smp request(net::MadMethod method, AttributeId attribute, std::uint32_t modifier = 0) {
        net::Smp smp;
        smp.header.management_class = net::kClassSubnLidRouted;
        smp.header.method = method;
        smp.header.attribute_id = static_cast<std::uint16_t>(attribute);
        smp.header.attribute_modifier = modifier;
        smp.header.transaction_id = 77;
        return smp;
    }
    net::Smp get(Node& node, AttributeId attribute, std::uint32_t modifier = 0, unsigned port = 1) {
        return answer(node, port, request(net::MadMethod::kGet, attribute, modifier), 0).value();
    }
    net::Smp set(Node& node, AttributeId attribute, const Bytes& data, std::uint32_t modifier = 0,
                 unsigned port = 1) {
        net::Smp smp = request(net::MadMethod::kSet, attribute, modifier);
        smp.data = data;
        return answer(node, port, smp, 0).value();
    }
    /// The status of setting one component of a port's PortInfo, and what it then is.
    std::pair<unsigned, Number> set_component(Node& node, Number PortInfo::*member, Number value,
                                              unsigned modifier = 1, unsigned port = 1) {
        PortInfo info = node.port(node.is_switch() ? modifier : port).info;
        info.port_state = info.physical_state = info.link_down_default = 0;
        info.*member = value;
        Bytes data{};
        encode(info, data);
        const net::Smp reply = set(node, AttributeId::kPortInfo, data, modifier, port);
        return {reply.header.status, decode_port_info(reply.data).*member};
    }

    net::InternalSwitch fabric_;
    Node ca_ = Node::channel_adapter(0x1111, 0x2222, 2, "a node");
    Node switch_ = Node::of_switch(0x3333, 4, "a switch", fabric_);
};

TEST_F(Agent, MX_2_the_answer_copies_the_request) {
    const net::Smp reply = get(ca_, AttributeId::kPortInfo, 1);
    EXPECT_EQ(reply.header.method, net::MadMethod::kGetResponse);
    EXPECT_EQ(reply.header.transaction_id, 77U);
    EXPECT_EQ(reply.header.attribute_modifier, 1U);
    EXPECT_EQ(reply.header.status, 0);
}

TEST_F(Agent, MX_3_and_M_31_one_status_for_each_fault) {
    net::Smp bad = request(net::MadMethod::kGet, AttributeId::kNodeInfo);
    bad.header.class_version = 2;
    EXPECT_EQ(answer(ca_, 1, bad, 0)->header.status, 0x0004);
    bad.header.class_version = 1;
    bad.header.base_version = 2;
    EXPECT_EQ(answer(ca_, 1, bad, 0)->header.status, 0x0004);
    EXPECT_EQ(answer(ca_, 1, request(net::MadMethod::kSend, AttributeId::kNodeInfo), 0)->header.status,
              0x0008);
    EXPECT_EQ(get(ca_, AttributeId::kSwitchInfo).header.status, 0x000C);
    EXPECT_EQ(get(ca_, static_cast<AttributeId>(0x7777)).header.status, 0x000C);
    EXPECT_EQ(set(ca_, AttributeId::kNodeInfo, {}).header.status, 0x000C);
    EXPECT_EQ(get(ca_, AttributeId::kPortInfo, 3).header.status, 0x001C);
    EXPECT_EQ(get(ca_, AttributeId::kSmInfo).header.status, 0x000C);
}

TEST_F(Agent, MX_15_every_node_has_its_attributes) {
    for (const AttributeId attribute :
         {AttributeId::kNodeDescription, AttributeId::kNodeInfo, AttributeId::kGuidInfo,
          AttributeId::kPortInfo, AttributeId::kPkeyTable}) {
        EXPECT_EQ(get(ca_, attribute).header.status, 0) << static_cast<unsigned>(attribute);
        EXPECT_EQ(get(switch_, attribute).header.status, 0) << static_cast<unsigned>(attribute);
    }
    EXPECT_EQ(get(ca_, AttributeId::kVlArbitrationTable, 1U << 16).header.status, 0x000C);
    EXPECT_EQ(std::to_integer<char>(get(ca_, AttributeId::kNodeDescription).data[0]), 'a');
}

TEST_F(Agent, MX_16_node_info_through_each_port) {
    for (const unsigned port : {1U, 2U}) {
        const NodeInfo info = decode_node_info(get(ca_, AttributeId::kNodeInfo, 0, port).data);
        EXPECT_EQ(info.type, 1U);
        EXPECT_EQ(info.ports, 2U);
        EXPECT_EQ(info.node_guid, 0x1111U);
        EXPECT_EQ(info.port_guid, 0x2222U + port - 1);
        EXPECT_EQ(info.local_port, port);
    }
    const NodeInfo info = decode_node_info(get(switch_, AttributeId::kNodeInfo, 0, 3).data);
    EXPECT_EQ(info.type, 2U);
    EXPECT_EQ(info.port_guid, 0x3333U);
    EXPECT_EQ(info.local_port, 3U);
}

TEST_F(Agent, M_27_and_MX_17_set_takes_and_zero_codes_change_nothing) {
    EXPECT_EQ(set_component(ca_, &PortInfo::lid, 0x42), std::pair(0U, Number{0x42}));
    EXPECT_EQ(ca_.port(1).info.lid, 0x42U);
    EXPECT_EQ(set_component(ca_, &PortInfo::link_width_enabled, 0), std::pair(0U, Number{3}));
    EXPECT_EQ(set_component(ca_, &PortInfo::link_width_enabled, 2), std::pair(0U, Number{2}));
    EXPECT_EQ(set_component(ca_, &PortInfo::link_width_enabled, 255), std::pair(0U, Number{3}));
    EXPECT_EQ(set_component(ca_, &PortInfo::link_speed_enabled, 0), std::pair(0U, Number{7}));
    EXPECT_EQ(set_component(ca_, &PortInfo::operational_vls, 0), std::pair(0U, Number{1}));
    EXPECT_EQ(set_component(ca_, &PortInfo::port_state, 0), std::pair(0U, kStateInitialize));
    EXPECT_EQ(set_component(ca_, &PortInfo::capability_mask, 0).second, ca_.port(1).info.capability_mask);
}

TEST_F(Agent, MX_18_invalid_values_are_refused_and_the_rest_is_set) {
    ca_.port(1).info.lid = 5;
    const auto refused = [&](Number PortInfo::*member, Number value) {
        const Number before = ca_.port(1).info.*member;
        EXPECT_EQ(set_component(ca_, member, value), std::pair(0x1CU, before));
    };
    refused(&PortInfo::lid, 0xC000);
    refused(&PortInfo::master_sm_lid, 0xFFFF);
    refused(&PortInfo::neighbor_mtu, 0);
    refused(&PortInfo::neighbor_mtu, 6);
    refused(&PortInfo::link_width_enabled, 8);
    refused(&PortInfo::link_speed_enabled, 8);
    refused(&PortInfo::port_state, 2);
    refused(&PortInfo::port_state, 5);
    refused(&PortInfo::operational_vls, 2);
    refused(&PortInfo::link_down_default, 3);
    PortInfo info = ca_.port(1).info;
    info.port_state = info.physical_state = 0;
    info.lid = 0xC000;
    info.master_sm_lid = 9;
    Bytes data{};
    encode(info, data);
    EXPECT_EQ(set(ca_, AttributeId::kPortInfo, data).header.status, 0x001C);
    EXPECT_EQ(ca_.port(1).info.lid, 5U);
    EXPECT_EQ(ca_.port(1).info.master_sm_lid, 9U);
}

TEST_F(Agent, MX_19_an_adapters_port_is_set_through_itself_only) {
    EXPECT_EQ(set_component(ca_, &PortInfo::lid, 7, 2, 1).first, 0x1CU);
    EXPECT_EQ(ca_.port(2).info.lid, 0U);
    EXPECT_EQ(set_component(ca_, &PortInfo::lid, 7, 2, 2).first, 0U);
    EXPECT_EQ(decode_port_info(get(ca_, AttributeId::kPortInfo, 2, 1).data).lid, 7U);
    EXPECT_EQ(decode_port_info(get(ca_, AttributeId::kPortInfo, 0, 2).data).lid, 7U);
}

TEST_F(Agent, MX_20_port_states_are_commanded_step_by_step) {
    EXPECT_EQ(set_component(ca_, &PortInfo::port_state, kStateActive), std::pair(0x1CU, kStateInitialize));
    EXPECT_EQ(set_component(ca_, &PortInfo::port_state, kStateArmed), std::pair(0U, kStateArmed));
    EXPECT_EQ(set_component(ca_, &PortInfo::port_state, kStateActive), std::pair(0U, kStateActive));
    EXPECT_EQ(set_component(ca_, &PortInfo::port_state, kStateArmed), std::pair(0U, kStateArmed));
    EXPECT_EQ(set_component(ca_, &PortInfo::port_state, kStateDown), std::pair(0U, kStateInitialize));
    EXPECT_EQ(set_component(ca_, &PortInfo::physical_state, 5).first, 0x1CU);
    EXPECT_EQ(set_component(ca_, &PortInfo::physical_state, kPhysicalDisabled),
              std::pair(0U, kPhysicalDisabled));
    EXPECT_EQ(ca_.port(1).info.port_state, kStateDown);
    EXPECT_EQ(set_component(ca_, &PortInfo::port_state, kStateArmed).first, 0x1CU);
}

TEST_F(Agent, MX_21_client_reregister_shows_in_that_answer_only) {
    EXPECT_EQ(set_component(ca_, &PortInfo::client_reregister, 1), std::pair(0U, Number{1}));
    EXPECT_EQ(decode_port_info(get(ca_, AttributeId::kPortInfo).data).client_reregister, 0U);
}

TEST_F(Agent, ASwitchsExternalPortHasNoLid) {
    EXPECT_EQ(set_component(switch_, &PortInfo::lid, 9, 2), std::pair(0U, Number{0}));
    EXPECT_EQ(set_component(switch_, &PortInfo::hoq_life, 7, 2), std::pair(0U, Number{7}));
    EXPECT_EQ(set_component(switch_, &PortInfo::lid, 9, 0), std::pair(0U, Number{9}));
    EXPECT_EQ(switch_.port(0).info.lid, 9U);
}

TEST_F(Agent, AGetIsAnsweredByTheAttributeAloneWhateverItsDataWere) {
    net::Smp smp = request(net::MadMethod::kGet, AttributeId::kNodeDescription);
    smp.data.fill(std::byte{0xEE});
    const net::Smp reply = answer(ca_, 1, smp, 0).value();
    EXPECT_EQ(reply.data[0], std::byte{'a'});
    EXPECT_EQ(reply.data[std::string("a node").size()], std::byte{0});
    EXPECT_EQ(reply.data.back(), std::byte{0});
}

TEST_F(Agent, TheFirstGuidOfAPortIsItsOwn) {
    Bytes data;
    data.fill(std::byte{0x11});
    const net::Smp reply = set(ca_, AttributeId::kGuidInfo, data);
    EXPECT_EQ(reply.header.status, 0);
    EXPECT_EQ(ca_.port(1).guids[0], 0x2222U);
    EXPECT_EQ(ca_.port(1).guids[1], 0x1111111111111111U);
    EXPECT_EQ(reply.data[7], std::byte{0x22});
    EXPECT_EQ(get(ca_, AttributeId::kGuidInfo, 1).header.status, 0x001C);
}

TEST_F(Agent, TheDefaultMulticastPortReachesTheFabric) {
    SwitchInfo info = switch_.switch_info;
    info.default_multicast_primary = 3;
    Bytes data{};
    encode(info, data);
    EXPECT_EQ(set(switch_, AttributeId::kSwitchInfo, data).header.status, 0);
    EXPECT_EQ(fabric_.members(0xFF00), (std::vector<net::InternalSwitch::PortIndex>{2}));
}

// OperationalVLs starts anew with the link: one lane works until management has set both ends.
TEST_F(Agent, ALinkThatComesUpAnewHasOneLane) {
    switch_.set_vl_cap(2, 4);
    EXPECT_EQ(set_component(switch_, &PortInfo::operational_vls, 3, 2), std::pair(0U, Number{3}));
    switch_.set_link(2, false);
    switch_.set_link(2, true);
    EXPECT_EQ(switch_.port(2).info.operational_vls, 1U);
}

TEST_F(Agent, MX_22_pkey_table) {
    net::Smp reply = get(ca_, AttributeId::kPkeyTable);
    EXPECT_EQ(reply.data[0], std::byte{0xFF});
    EXPECT_EQ(reply.data[1], std::byte{0xFF});
    EXPECT_EQ(reply.data[2], std::byte{0});
    Bytes data{};
    data[0] = std::byte{0x80};
    data[1] = std::byte{0x23};
    EXPECT_EQ(set(ca_, AttributeId::kPkeyTable, data).header.status, 0);
    EXPECT_EQ(ca_.port(1).pkeys[0], 0x8023);
    EXPECT_EQ(get(ca_, AttributeId::kPkeyTable, 1).header.status, 0x001C);
    EXPECT_EQ(get(switch_, AttributeId::kPkeyTable, 5U << 16).header.status, 0x001C);
}

TEST_F(Agent, MX_23_and_MX_24_virtual_lane_tables) {
    switch_.set_vl_cap(2, 4);
    Bytes data{};
    data[0] = std::byte{0x12};
    data[7] = std::byte{0x3E};
    net::Smp reply = set(switch_, AttributeId::kSlToVlMappingTable, data, 1U << 8 | 2);
    EXPECT_EQ(reply.header.status, 0);
    EXPECT_EQ(reply.data, data);
    EXPECT_EQ(switch_.sl_to_vl(1, 2)[0], 1);
    EXPECT_EQ(switch_.sl_to_vl(1, 2)[1], 2);
    EXPECT_EQ(switch_.sl_to_vl(1, 2)[15], 14);
    EXPECT_EQ(switch_.sl_to_vl(2, 1)[0], 0);
    data.fill(std::byte{0});
    data[2] = std::byte{0x05};
    data[3] = std::byte{0x80};
    reply = set(switch_, AttributeId::kVlArbitrationTable, data, 4U << 16 | 2);
    EXPECT_EQ(reply.header.status, 0);
    EXPECT_EQ(reply.data, data);
    EXPECT_EQ(switch_.port(2).vl_arbitration[3][1], (VlWeight{5, 128}));
    EXPECT_EQ(get(switch_, AttributeId::kVlArbitrationTable, 5U << 16 | 2).header.status, 0x001C);
}

TEST_F(Agent, MX_25_and_MX_26_forwarding_tables) {
    Bytes data;
    data.fill(std::byte{0xFF});
    data[5] = std::byte{3};
    EXPECT_EQ(set(switch_, AttributeId::kLinearForwardingTable, data, 1).data, data);
    SwitchInfo info = switch_.switch_info;
    info.linear_top = 100;
    Bytes switch_data{};
    encode(info, switch_data);
    EXPECT_EQ(set(switch_, AttributeId::kSwitchInfo, switch_data).header.status, 0);
    EXPECT_EQ(fabric_.route(69), 2U);
    EXPECT_EQ(fabric_.route(70), net::InternalSwitch::kNoPort);
    EXPECT_EQ(get(switch_, AttributeId::kLinearForwardingTable, 512).header.status, 0x001C);
    info.linear_top = 0x9000;
    encode(info, switch_data);
    EXPECT_EQ(set(switch_, AttributeId::kSwitchInfo, switch_data).header.status, 0x001C);
    data.fill(std::byte{0});
    data[3] = std::byte{0x06};  // ports 1 and 2 for the second MLID
    EXPECT_EQ(set(switch_, AttributeId::kMulticastForwardingTable, data, 0).data, data);
    EXPECT_EQ(fabric_.members(0xC001), (std::vector<net::InternalSwitch::PortIndex>{0, 1}));
}

TEST_F(Agent, MX_27_port_state_change_is_cleared_by_one) {
    EXPECT_EQ(decode_switch_info(get(switch_, AttributeId::kSwitchInfo).data).port_state_change, 1U);
    SwitchInfo info = switch_.switch_info;
    const auto write = [&](Number bit) {
        info.port_state_change = bit;
        Bytes data{};
        encode(info, data);
        return decode_switch_info(set(switch_, AttributeId::kSwitchInfo, data).data).port_state_change;
    };
    EXPECT_EQ(write(0), 1U);
    EXPECT_EQ(write(1), 0U);
    set_component(switch_, &PortInfo::port_state, kStateArmed, 2);
    EXPECT_EQ(switch_.switch_info.port_state_change, 0U);
    switch_.set_link(2, false);
    EXPECT_EQ(switch_.switch_info.port_state_change, 1U);
}

TEST_F(Agent, MX_12_and_MX_13_the_management_key_matrix) {
    PortInfo& info = ca_.port(1).info;
    constexpr Number kKey = 0xFEED;
    info.mkey = kKey;
    for (const net::MadMethod method : {net::MadMethod::kGet, net::MadMethod::kSet})
        for (Number protect = 0; protect < 4; ++protect) {
            info.mkey_protect = protect;
            net::Smp smp = request(method, AttributeId::kPkeyTable);
            smp.data[0] = smp.data[1] = std::byte{0xFF};
            const Number before = info.mkey_violations;
            const bool passes = method == net::MadMethod::kGet && protect < 2;
            EXPECT_EQ(answer(ca_, 1, smp, 0).has_value(), passes) << protect;
            EXPECT_EQ(info.mkey_violations, before + (passes ? 0 : 1));
            smp.mkey = kKey;
            EXPECT_TRUE(answer(ca_, 1, smp, 0).has_value());
        }
    info.mkey_protect = 0;
    EXPECT_EQ(decode_port_info(get(ca_, AttributeId::kPortInfo).data).mkey, kKey);
    info.mkey_protect = 1;
    EXPECT_EQ(decode_port_info(get(ca_, AttributeId::kPortInfo).data).mkey, 0U);
}

TEST_F(Agent, MX_14_the_lease_ends_the_protection_unless_the_owner_speaks) {
    PortInfo& info = ca_.port(1).info;
    info.mkey = 1;
    info.mkey_protect = 2;
    info.mkey_lease_period = 10;
    info.mkey_violations = 0xFFFE;
    const net::Smp foreign = request(net::MadMethod::kGet, AttributeId::kNodeInfo);
    net::Smp owner = foreign;
    owner.mkey = 1;
    EXPECT_FALSE(answer(ca_, 1, foreign, kSecond));
    EXPECT_TRUE(answer(ca_, 1, owner, 5 * kSecond));
    EXPECT_FALSE(answer(ca_, 1, foreign, 12 * kSecond));  // the lease starts again
    EXPECT_FALSE(answer(ca_, 1, foreign, 21 * kSecond));
    EXPECT_EQ(info.mkey_violations, 0xFFFFU);
    EXPECT_TRUE(answer(ca_, 1, foreign, 22 * kSecond));
    EXPECT_EQ(info.mkey_protect, 0U);
    info.mkey_lease_period = 0;
    info.mkey_protect = 2;
    EXPECT_FALSE(answer(ca_, 1, foreign, 30 * kSecond));
    EXPECT_FALSE(answer(ca_, 1, foreign, 3000 * kSecond));
}

TEST_F(Agent, TrapRepressIsNotAnswered) {
    EXPECT_FALSE(answer(ca_, 1, request(net::MadMethod::kTrapRepress, AttributeId::kNotice), 0));
}

}  // namespace
}  // namespace uib::management

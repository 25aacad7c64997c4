// Flow steering: which headers a frame has, which rule takes it.
#include "engine/verbs/flow_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace uib::verbs {
namespace {

using ipc::FlowType;
using Frame = std::vector<std::byte>;

/// A queue pair that nobody looks into.
Qp* qp(std::uintptr_t number) {
    return reinterpret_cast<Qp*>(number * 16);
}

Frame bytes(std::initializer_list<int> values) {
    Frame out;
    for (const int value : values) out.push_back(static_cast<std::byte>(value));
    return out;
}

void append(Frame& to, const Frame& from) {
    to.insert(to.end(), from.begin(), from.end());
}

Frame ethernet(int last, std::uint16_t type, bool tagged = false, bool multicast = false) {
    Frame out = bytes({multicast ? 3 : 2, 0, 0, 0, 0, last, 2, 0, 0, 0, 0, 0xEE});
    if (tagged) append(out, bytes({0x81, 0x00, 0x20, 0x05}));
    append(out, bytes({type >> 8, type & 0xFF}));
    return out;
}

Frame ipv4(int protocol, int fragment_high = 0x40, int fragment_low = 0) {
    return bytes(
        {0x45, 0xB8, 0, 28, 0, 0, fragment_high, fragment_low, 63, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2});
}

Frame ports(std::uint16_t source, std::uint16_t destination) {
    return bytes({source >> 8, source & 0xFF, destination >> 8, destination & 0xFF, 0, 8, 0, 0});
}

Frame udp_frame(std::uint16_t destination_port, bool tagged = false) {
    Frame out = ethernet(1, 0x0800, tagged);
    append(out, ipv4(17));
    append(out, ports(1000, destination_port));
    return out;
}

Frame ipv6_frame(int next_header) {
    Frame out = ethernet(1, 0x86DD);
    append(out, bytes({0x6A, 0xB1, 0x23, 0x45, 0, 8, next_header, 64}));
    for (int i = 0; i < 32; ++i) out.push_back(static_cast<std::byte>(i + 1));
    append(out, ports(1000, 2000));
    return out;
}

FlowRule to_mac(Qp* receiver, std::uint8_t last, std::uint32_t priority = 0) {
    FlowRule rule;
    rule.qp = receiver;
    rule.priority = priority;
    const std::uint8_t mac[6] = {2, 0, 0, 0, 0, last};
    std::memcpy(rule.value.destination_mac, mac, sizeof mac);
    std::memset(rule.mask.destination_mac, 0xFF, sizeof mac);
    return rule;
}

FlowRule of_type(Qp* receiver, FlowType type) {
    FlowRule rule;
    rule.qp = receiver;
    rule.type = type;
    return rule;
}

std::vector<Qp*> match(const FlowTable& table, const Frame& frame) {
    std::vector<Qp*> out;
    table.match(frame, out);
    std::sort(out.begin(), out.end());
    return out;
}

using Qps = std::vector<Qp*>;

TEST(FrameHeaders, of_udp_over_ipv4) {
    for (const bool tagged : {false, true}) {
        const FrameHeaders headers = parse_frame(udp_frame(2000, tagged));
        EXPECT_EQ(headers.layers, ipc::kFlowIpv4 | ipc::kFlowUdp | (tagged ? ipc::kFlowVlan : 0U));
        const ipc::FlowFields& f = headers.fields;
        EXPECT_EQ(f.destination_mac[5], 1);
        EXPECT_EQ(f.source_mac[5], 0xEE);
        EXPECT_EQ(f.ether_type[0], 8);
        EXPECT_EQ(f.vlan_tag[1], tagged ? 5 : 0);
        EXPECT_EQ(f.source_ip[3], 1);
        EXPECT_EQ(f.destination_ip[3], 2);
        EXPECT_EQ(f.source_ip[4], 0);
        EXPECT_EQ(f.protocol, 17);
        EXPECT_EQ(f.traffic_class, 0xB8);
        EXPECT_EQ(f.hop_limit, 63);
        EXPECT_EQ(f.ip_flags, 2);
        EXPECT_EQ(f.source_port[0] << 8 | f.source_port[1], 1000);
        EXPECT_EQ(f.destination_port[0] << 8 | f.destination_port[1], 2000);
    }
}

TEST(FrameHeaders, of_tcp_over_ipv6) {
    const FrameHeaders headers = parse_frame(ipv6_frame(6));
    EXPECT_EQ(headers.layers, ipc::kFlowIpv6 | ipc::kFlowTcp);
    EXPECT_EQ(headers.fields.traffic_class, 0xAB);
    EXPECT_EQ(headers.fields.flow_label[0], 0);
    EXPECT_EQ(headers.fields.flow_label[1], 1);
    EXPECT_EQ(headers.fields.flow_label[3], 0x45);
    EXPECT_EQ(headers.fields.source_ip[0], 1);
    EXPECT_EQ(headers.fields.destination_ip[15], 32);
    EXPECT_EQ(headers.fields.destination_port[1], 2000 & 0xFF);
    EXPECT_EQ(parse_frame(ipv6_frame(58)).layers, ipc::kFlowIpv6);
}

TEST(FrameHeaders, that_are_cut_short_are_not_there) {
    const Frame whole = udp_frame(2000);
    for (std::size_t length = 0; length < whole.size(); ++length) {
        const FrameHeaders headers = parse_frame(std::span(whole).first(length));
        std::uint32_t layers = 0;
        if (length >= 34) layers |= ipc::kFlowIpv4;
        if (length >= 38) layers |= ipc::kFlowUdp;
        EXPECT_EQ(headers.layers, layers) << length;
    }
}

TEST(FrameHeaders, later_fragments_have_no_ports) {
    Frame frame = ethernet(1, 0x0800);
    append(frame, ipv4(17, 0x20, 1));
    append(frame, ports(1, 2));
    const FrameHeaders headers = parse_frame(frame);
    EXPECT_EQ(headers.layers, ipc::kFlowIpv4);
    EXPECT_EQ(headers.fields.ip_flags, 4);
}

TEST(FlowTable, without_rules_nobody_gets_a_frame) {
    EXPECT_EQ(match(FlowTable(), udp_frame(1)), Qps{});
}

TEST(FlowTable, fields_count_where_the_mask_has_ones) {
    FlowTable table;
    FlowRule rule = to_mac(qp(1), 0x11);
    rule.mask.destination_mac[5] = 0x0F;
    table.add(rule);
    EXPECT_EQ(match(table, ethernet(0x21, 0x88B5)), Qps{qp(1)});
    EXPECT_EQ(match(table, ethernet(0x12, 0x88B5)), Qps{});
}

TEST(FlowTable, a_rule_wants_its_layers) {
    FlowTable table;
    FlowRule rule;
    rule.qp = qp(1);
    rule.layers = ipc::kFlowIpv4 | ipc::kFlowUdp;
    rule.value.destination_port[0] = 2000 >> 8;
    rule.value.destination_port[1] = 2000 & 0xFF;
    rule.mask.destination_port[0] = rule.mask.destination_port[1] = 0xFF;
    table.add(rule);
    EXPECT_EQ(match(table, udp_frame(2000)), Qps{qp(1)});
    EXPECT_EQ(match(table, udp_frame(2001)), Qps{});
    EXPECT_EQ(match(table, ipv6_frame(17)), Qps{});
    EXPECT_EQ(match(table, ethernet(1, 0x0800)), Qps{});
}

TEST(FlowTable, the_lowest_priority_value_wins_then_the_older_rule) {
    FlowTable table;
    const FlowRule late = to_mac(qp(1), 1, 5);
    FlowRule first = to_mac(qp(2), 1, 3), second = to_mac(qp(3), 1, 3);
    std::memset(second.mask.destination_mac, 0, 5);  // another question with the same answer
    table.add(late);
    EXPECT_EQ(match(table, udp_frame(1)), Qps{qp(1)});
    table.add(first);
    table.add(second);
    EXPECT_EQ(match(table, udp_frame(1)), Qps{qp(2)});
    table.remove(first);
    EXPECT_EQ(match(table, udp_frame(1)), Qps{qp(3)});
    table.remove(second);
    EXPECT_EQ(match(table, udp_frame(1)), Qps{qp(1)});
}

TEST(FlowTable, equal_rules_share_a_frame) {
    FlowTable table;
    const FlowRule one = to_mac(qp(1), 1), two = to_mac(qp(2), 1), again = to_mac(qp(2), 1);
    table.add(one);
    table.add(two);
    table.add(again);
    EXPECT_EQ(match(table, udp_frame(1)), (Qps{qp(1), qp(2)}));
}

TEST(FlowTable, a_rule_that_does_not_trap_lets_the_search_go_on) {
    FlowTable table;
    FlowRule watcher = to_mac(qp(1), 1);
    watcher.flags = ipc::kFlowDontTrap;
    const FlowRule taker = to_mac(qp(2), 1, 7);
    const FlowRule rest = of_type(qp(3), FlowType::kAllDefault);
    table.add(watcher);
    table.add(rest);
    EXPECT_EQ(match(table, udp_frame(1)), (Qps{qp(1), qp(3)}));
    table.add(taker);
    EXPECT_EQ(match(table, udp_frame(1)), (Qps{qp(1), qp(2)}));
}

TEST(FlowTable, defaults_get_what_no_normal_rule_took) {
    FlowTable table;
    const FlowRule all = of_type(qp(1), FlowType::kAllDefault);
    const FlowRule groups = of_type(qp(2), FlowType::kMulticastDefault);
    const FlowRule normal = to_mac(qp(3), 1);
    table.add(groups);
    EXPECT_EQ(match(table, ethernet(9, 0x88B5)), Qps{});
    table.add(all);
    table.add(normal);
    EXPECT_EQ(match(table, ethernet(9, 0x88B5)), Qps{qp(1)});
    EXPECT_EQ(match(table, ethernet(9, 0x88B5, false, true)), (Qps{qp(1), qp(2)}));
    EXPECT_EQ(match(table, udp_frame(1)), Qps{qp(3)});
}

TEST(FlowTable, a_sniffer_sees_all_and_each_frame_once) {
    FlowTable table;
    const FlowRule sniffer = of_type(qp(1), FlowType::kSniffer);
    const FlowRule normal = to_mac(qp(2), 1), own = to_mac(qp(1), 2);
    table.add(sniffer);
    table.add(normal);
    table.add(own);
    EXPECT_EQ(match(table, udp_frame(1)), (Qps{qp(1), qp(2)}));
    EXPECT_EQ(match(table, ethernet(2, 0x88B5)), Qps{qp(1)});
    EXPECT_EQ(match(table, ethernet(9, 0x88B5)), Qps{qp(1)});
}

TEST(FlowTable, contradictions_are_refused) {
    ipc::CreateFlowRequest good{};
    good.port = 1;
    good.layers = ipc::kFlowIpv4 | ipc::kFlowUdp;
    EXPECT_EQ(check_flow(good), 0);
    const auto refused = [&](auto change) {
        ipc::CreateFlowRequest request = good;
        change(request);
        return check_flow(request) == EINVAL;
    };
    EXPECT_TRUE(refused([](auto& r) { r.port = 2; }));
    EXPECT_TRUE(refused([](auto& r) { r.priority = 0x10000; }));
    EXPECT_TRUE(refused([](auto& r) { r.type = 4; }));
    EXPECT_TRUE(refused([](auto& r) { r.flags = 1; }));
    EXPECT_TRUE(refused([](auto& r) { r.layers |= 1U << 5; }));
    EXPECT_TRUE(refused([](auto& r) { r.layers |= ipc::kFlowIpv6; }));
    EXPECT_TRUE(refused([](auto& r) { r.layers |= ipc::kFlowTcp; }));
    EXPECT_TRUE(refused([](auto& r) { r.type = static_cast<std::uint32_t>(FlowType::kSniffer); }));
    EXPECT_TRUE(refused([](auto& r) {  // IPv4 in an IPv6 frame
        r.value.ether_type[0] = 0x86;
        r.value.ether_type[1] = 0xDD;
        r.mask.ether_type[0] = r.mask.ether_type[1] = 0xFF;
    }));
}

}  // namespace
}  // namespace uib::verbs

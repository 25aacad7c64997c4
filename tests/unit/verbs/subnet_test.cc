// InfiniBand devices as nodes of subnets: what management sets shows at the ports, and subnets are joined by
// a router.
#include <poll.h>

#include <set>

#include "net/wire/gid.h"
#include "tests/unit/verbs/adapter_fixture.h"

namespace uib::verbs {
namespace {

constexpr std::uint64_t kPrefixA = 0xFEC0000000000001;
constexpr std::uint64_t kPrefixB = 0xFEC0000000000002;

SubnetConfig subnet(const char* name, std::uint64_t prefix, std::uint8_t lmc = 0, bool manager = true) {
    SubnetConfig config;
    config.name = name;
    config.options.gid_prefix = prefix;
    config.options.lmc = lmc;
    config.manager = manager;
    return config;
}

DeviceConfig device(const char* name, const char* of) {
    DeviceConfig config(name);
    config.subnet = of;
    return config;
}

TEST(Subnets, PortsAreActiveWithLidsFromOneWhenTheAdapterIsThere) {
    Adapter adapter({"a", "b", "c"});
    for (std::size_t i = 0; i < 3; ++i) {
        const ipc::PortAttributes port = adapter.devices()[i]->port_attributes();
        EXPECT_EQ(port.state, 4U);
        EXPECT_EQ(port.lid, i + 1);
        EXPECT_EQ(port.sm_lid, 1);
        EXPECT_EQ(port.lmc, 0);
        EXPECT_EQ(port.pkeys[0], 0xFFFF);
        EXPECT_EQ(port.gids[0][0], 0xFE);
        EXPECT_EQ(port.gids[0][1], 0x80);
        EXPECT_EQ(port.gids[0][15], i + 1);
    }
    EXPECT_EQ(adapter.next_deadline(), transport::kNever);
    EXPECT_EQ(adapter.router(), nullptr);
}

TEST(Subnets, MaskControlAndPrefixComeFromTheConfiguration) {
    Adapter adapter({"a", "b"}, {subnet("", kPrefixA, 3)});
    EXPECT_EQ(adapter.devices()[1]->port_attributes().lid, 16);
    EXPECT_EQ(adapter.devices()[1]->port_attributes().lmc, 3);
    EXPECT_EQ(net::prefix_of(adapter.devices()[1]->gids()[0]), kPrefixA);
    EXPECT_EQ(adapter.fabric().route(16 + 7), adapter.devices()[1]->port());
    EXPECT_EQ(adapter.fabric().route(16 + 8), net::InternalSwitch::kNoPort);
}

TEST(Subnets, WithoutAManagerPortsWaitForOne) {
    Adapter adapter({"a"}, {subnet("", kPrefixA, 0, false)});
    EXPECT_EQ(adapter.devices()[0]->port_attributes().state, 2U);
    EXPECT_EQ(adapter.devices()[0]->port_attributes().lid, 0);
    EXPECT_FALSE(adapter.devices()[0]->active());
    adapter.subnet()->run_manager({}, 0);
    EXPECT_EQ(adapter.devices()[0]->port_attributes().state, 4U);
    EXPECT_EQ(adapter.devices()[0]->port_attributes().lid, 1);
}

TEST(Subnets, EnginesWithDifferentNumbersShareNoGuid) {
    std::set<std::uint64_t> guids;
    for (const std::uint16_t engine : {0, 1, 2}) {
        std::vector<DeviceConfig> devices = {"a", "b"};
        for (DeviceConfig& config : devices) config.engine = engine;
        Adapter adapter(devices);
        for (const auto& made : adapter.devices()) guids.insert(made->guid());
        guids.insert(adapter.subnet()->switch_node().node().info.node_guid);
    }
    EXPECT_EQ(guids.size(), 9U);
    EXPECT_TRUE(guids.contains(0x0255'4900'0000'0001));
}

TEST(Subnets, AnUnknownSubnetIsRefused) {
    EXPECT_THROW(Adapter({device("a", "x")}, {subnet("b", kPrefixA)}), std::invalid_argument);
}

class ChangeTest : public AdapterTest {};

TEST_F(ChangeTest, ClientsAreToldOfWhatManagementChanges) {
    management::SmpNode& node = adapter_.subnet()->adapter(0);
    const auto events = [&] {
        std::set<std::uint32_t> types;
        adapter_.raise_port_events();
        ipc::AsyncEvent event{};
        while (::read(async_pipe_[0], &event, sizeof event) == static_cast<ssize_t>(sizeof event))
            types.insert(event.type);
        return types;
    };
    client_->set_device(*adapter_.devices()[0]);
    events();
    node.node().port(1).info.lid = 9;
    node.node().changed(1);
    EXPECT_EQ(adapter_.devices()[0]->port_attributes().lid, 9);
    EXPECT_TRUE(adapter_.take_port_changes());
    ipc::AsyncEvent early{};
    EXPECT_LT(::read(async_pipe_[0], &early, sizeof early), 0) << "not before the file system shows it";
    EXPECT_EQ(events(), std::set<std::uint32_t>{IBV_EVENT_LID_CHANGE});
    node.node().port(1).pkeys[0] = 0x8001;
    node.node().changed(1);
    EXPECT_EQ(events(), std::set<std::uint32_t>{IBV_EVENT_PKEY_CHANGE});
    EXPECT_EQ(adapter_.devices()[0]->pkeys()[0], 0x8001);
}

class LinkFaultTest : public AdapterTest {
  protected:
    static net::FaultRule link_down(std::uint32_t port) {
        net::FaultRule rule;
        rule.action = net::FaultAction::kLinkDown;
        rule.port = port;
        return rule;
    }
    /// PortState at both ends of the device's link.
    std::pair<management::Number, management::Number> states(std::size_t device) {
        return {adapter_.subnet()->port_of(device).info.port_state,
                adapter_.subnet()
                    ->switch_node()
                    .node()
                    .port(adapter_.devices()[device]->port() + 1)
                    .info.port_state};
    }
};

TEST_F(LinkFaultTest, SubnetManagementSeesThePortGoAndBringsItUpAgain) {
    using States = std::pair<management::Number, management::Number>;
    const Device& device = *adapter_.devices()[1];
    const std::uint64_t sweeps = adapter_.subnet()->manager()->sweeps();
    client_->set_device(device);
    adapter_.raise_port_events();
    const std::uint32_t rule = adapter_.add_fault(link_down(1));
    EXPECT_EQ(states(1), (States{management::kStateDown, management::kStateDown}));
    EXPECT_EQ(states(0), (States{management::kStateActive, management::kStateActive}));
    EXPECT_EQ(device.port_attributes().state, 1U);
    EXPECT_EQ(device.link_downed, 1U);
    EXPECT_GT(adapter_.subnet()->manager()->sweeps(), sweeps) << "the manager has looked";
    EXPECT_EQ(adapter_.subnet()->manager()->topology().find(device.guid()), management::kNoNode);
    EXPECT_EQ(adapter_.fabric().route(device.lid()), net::InternalSwitch::kNoPort);
    adapter_.raise_port_events();
    std::vector<ipc::AsyncEvent> events = take_events();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].type, static_cast<std::uint32_t>(IBV_EVENT_PORT_ERR));
    EXPECT_TRUE(adapter_.remove_fault(rule));
    EXPECT_EQ(states(1), (States{management::kStateActive, management::kStateActive}));
    EXPECT_EQ(device.port_attributes().state, 4U);
    EXPECT_EQ(device.lid(), 2) << "the LID stays the port's";
    EXPECT_EQ(adapter_.fabric().route(2), device.port());
    adapter_.raise_port_events();
    std::set<std::uint32_t> types;
    for (const ipc::AsyncEvent& event : take_events()) types.insert(event.type);
    EXPECT_EQ(types, (std::set<std::uint32_t>{IBV_EVENT_PORT_ACTIVE, IBV_EVENT_CLIENT_REREGISTER}));
}

TEST_F(LinkFaultTest, WithoutTheManagersOwnLinkTheOthersGoOn) {
    const std::uint32_t rule = adapter_.add_fault(link_down(0));
    EXPECT_FALSE(adapter_.devices()[0]->active());
    EXPECT_TRUE(adapter_.devices()[1]->active());
    EXPECT_EQ(adapter_.fabric().route(2), adapter_.devices()[1]->port());
    EXPECT_TRUE(adapter_.remove_fault(rule));
    EXPECT_TRUE(adapter_.devices()[0]->active());
    EXPECT_EQ(adapter_.devices()[0]->lid(), 1);
    EXPECT_EQ(adapter_.fabric().route(1), adapter_.devices()[0]->port());
}

class RouterTest : public AdapterTest {
  protected:
    RouterTest()
        : AdapterTest({device("uib0", "a"), device("uib1", "b")},
                      {subnet("a", kPrefixA), subnet("b", kPrefixB)}) {}

    void SetUp() override {
        cq_ = make_cq(16);
        a_ = make_qp(cq_, ipc::Service::kUc);
        region_ = register_memory(memory_.data(), memory_.size(), ipc::kAccessLocalWrite);
    }
    /// One message from device 0 over a path to the GID of device 1.
    void send(std::uint8_t hop_limit) {
        ipc::QpAttributes a{};
        a.port = a.path.port = 1;
        EXPECT_EQ(modify(a_, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, a), 0);
        a.path.is_global = 1;
        a.path.hop_limit = hop_limit;
        a.path.dlid = 1;  // the peer's in its subnet, as programs tell each other
        const net::Gid& dgid = adapter_.devices()[1]->gids()[0];
        std::copy(dgid.begin(), dgid.end(), a.path.dgid);
        a.path_mtu = IBV_MTU_1024;
        a.dest_qp_number = 0x12345;
        EXPECT_EQ(modify(a_, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, a),
                  0);
        EXPECT_EQ(modify(a_, IBV_QPS_RTS, IBV_QP_SQ_PSN, a), 0);
        post_send(a_, {}, memory_.data(), 64, region_.lkey);
        EXPECT_EQ(wait(cq_).status, 0);
        turn();
    }

    TestCq cq_;
    TestQp a_;
    ipc::RegMrReply region_;
    std::array<std::uint8_t, 256> memory_{};
};

TEST_F(RouterTest, EachSubnetHasLidsAndAPrefixOfItsOwn) {
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(adapter_.devices()[i]->port_attributes().lid, 1);
        EXPECT_EQ(adapter_.devices()[i]->port_attributes().state, 4U);
        EXPECT_EQ(net::prefix_of(adapter_.devices()[i]->gids()[0]), i == 0 ? kPrefixA : kPrefixB);
        EXPECT_NE(adapter_.router()->lid(i), 0);
        EXPECT_NE(adapter_.router()->lid(i), 1);
    }
}

TEST_F(RouterTest, U8_1_a_global_path_leads_to_the_other_subnet) {
    send(64);
    EXPECT_EQ(adapter_.router()->forwarded(), 1U);
    EXPECT_EQ(adapter_.devices()[1]->counters().rcv_packets, 1U);
    EXPECT_EQ(adapter_.devices()[1]->counters().unknown_qp_drops, 1U);  // it has no such queue pair
    EXPECT_EQ(adapter_.devices()[0]->counters().rcv_packets, 0U);
}

TEST_F(RouterTest, U8_6_hop_limit_1_keeps_it_in_the_subnet) {
    send(1);
    EXPECT_EQ(adapter_.router()->dropped(net::RouterDrop::kHopLimit), 1U);
    EXPECT_EQ(adapter_.devices()[1]->counters().rcv_packets, 0U);
}

}  // namespace
}  // namespace uib::verbs

// Whatever management datagrams come from outside: under the sanitizers, nothing outside them is read; each
// ends after finitely many steps, and is answered, passed on, taken, or counted by the cause of its refusal.

#include "net/wire/codec.h"
#include "tests/simulation/random.h"
#include "tests/unit/management/joined_engines.h"

namespace uib::management {
namespace {

constexpr unsigned kOutside = 2;  // the fabric's port that leads out

/// An engine's subnet with a manager; the test is the wire at its external port.
class HostileDatagrams : public ::testing::Test, public SmpLink {
  protected:
    HostileDatagrams() {
        for (unsigned i = 0; i < kAdapters; ++i) fabric_.add_port();
        fabric_.add_external_port();
        subnet_ = std::make_unique<EngineSubnet>(
            fabric_, 0x1100, "switch",
            std::vector<EngineSubnet::AdapterConfig>{{0, 0x100, "adapter"}, {1, 0x101, "adapter"}});
        subnet_->connect(kOutside, this);
        subnet_->set_external_link(kOutside, true, 0);
        subnet_->run_manager({}, 0);
        // Nobody answers outside, so that it takes a while.
        for (int i = 0; i < 100 && subnet_->manager()->state() != SmState::kMaster; ++i) {
            now_ = subnet_->next_deadline();
            subnet_->on_timer(now_);
        }
        EXPECT_EQ(subnet_->manager()->state(), SmState::kMaster);
        general_ = std::make_unique<GeneralServices>(*subnet_);
    }
    void transmit(const SmpPacket& packet, Time) override {
        ++transmitted_;
        last_ = packet;
    }
    /// Everything that can be seen to have become of an SMP.
    std::uint64_t told() {
        const auto drops = [](const SmpNode& node) {
            const SmpDrops& of = node.drops();
            return of.route + of.link_down + of.management_key + of.lid + of.unexpected;
        };
        return transmitted_ + drops(subnet_->switch_node()) + drops(subnet_->adapter(0)) +
               drops(subnet_->adapter(1));
    }
    net::Lid outsider() { return static_cast<net::Lid>(random_.draw(60, 70)); }
    /// A datagram as a neighbour would send it, in some fields anything.
    SmpPacket smp() {
        static constexpr std::array kAttributes = {AttributeId::kNotice,
                                                   AttributeId::kNodeDescription,
                                                   AttributeId::kNodeInfo,
                                                   AttributeId::kSwitchInfo,
                                                   AttributeId::kGuidInfo,
                                                   AttributeId::kPortInfo,
                                                   AttributeId::kPkeyTable,
                                                   AttributeId::kSlToVlMappingTable,
                                                   AttributeId::kVlArbitrationTable,
                                                   AttributeId::kLinearForwardingTable,
                                                   AttributeId::kMulticastForwardingTable,
                                                   AttributeId::kSmInfo};
        static constexpr std::array kMethods = {net::MadMethod::kGet,  net::MadMethod::kGet,
                                                net::MadMethod::kSet,  net::MadMethod::kGetResponse,
                                                net::MadMethod::kTrap, net::MadMethod::kTrapRepress};
        SmpPacket made;
        net::MadHeader& header = made.smp.header;
        const bool directed = random_.chance(0.7);
        header.management_class = directed ? net::kClassSubnDirected : net::kClassSubnLidRouted;
        header.method = random_.pick(kMethods);
        header.attribute_id = static_cast<std::uint16_t>(random_.pick(kAttributes));
        header.attribute_modifier = random_.chance(0.5) ? random_.draw32(0, 5) : random_.draw32(0, ~0U);
        header.transaction_id = random_.draw(0, 40);
        net::DirectedRoute& route = made.smp.route;
        route.hop_count = static_cast<std::uint8_t>(random_.draw(0, 3));
        route.hop_pointer = static_cast<std::uint8_t>(random_.draw(0, 4));
        route.returning = random_.chance(0.2);
        // Who asks is outside: what goes to a node here would be taken there, and nothing told.
        route.slid = random_.chance(0.8) ? net::kPermissiveLid : outsider();
        route.dlid = random_.chance(0.8) ? net::kPermissiveLid : static_cast<net::Lid>(random_.draw(0, 6));
        for (std::size_t i = 1; i < 5; ++i) {
            route.initial_path[i] = static_cast<std::uint8_t>(random_.draw(0, 4));
            route.return_path[i] = static_cast<std::uint8_t>(random_.draw(0, 4));
        }
        if (!directed || random_.chance(0.1)) {
            made.slid = outsider();
            made.dlid = static_cast<net::Lid>(random_.draw(0, 6));
        }
        for (std::byte& byte : made.smp.data)
            if (random_.chance(0.3)) byte = static_cast<std::byte>(random_.next());
        return made;
    }

    simulation::Random random_{77};
    net::InternalSwitch fabric_;
    std::unique_ptr<EngineSubnet> subnet_;
    std::unique_ptr<GeneralServices> general_;
    std::uint64_t transmitted_ = 0;
    SmpPacket last_;
    Time now_ = 0;
};

TEST_F(HostileDatagrams, SubnetManagementAnswersPassesOnOrCountsEach) {
    std::array<std::byte, net::kMadBytes> bytes{};
    std::uint64_t answered = 0;
    std::uint64_t quiet = 0;
    for (int round = 0; round < 20'000; ++round) {
        net::build_smp(smp().smp, bytes);
        for (std::uint64_t i = random_.draw(0, 2); i > 0; --i)
            bytes[random_.draw(0, bytes.size() - 1)] = static_cast<std::byte>(random_.next());
        // An allocation of exactly this size, so that the sanitizer sees one byte too many.
        const std::vector<std::byte> exact(bytes.begin(),
                                           bytes.end() - (random_.chance(0.05) ? random_.draw(1, 255) : 0));
        SmpPacket packet = smp();
        if (net::parse_smp(exact, packet.smp) != net::MadError::kNone) continue;
        if (packet.smp.route.slid < outsider()) packet.smp.route.slid = outsider();
        const std::uint64_t before = told();
        const std::uint64_t sent = transmitted_;
        ++now_;
        subnet_->receive(kOutside, packet, now_);
        answered += transmitted_ > sent && last_.smp.header.is_response() ? 1 : 0;
        const net::MadMethod method = packet.smp.header.method;
        // A manager takes answers, those to forged questions, too; without one only what ends a trap
        // vanishes.
        if (round == 10'000) subnet_->stop_manager();
        if (round > 10'000 && told() == before && method != net::MadMethod::kTrapRepress) ++quiet;
        // A port that a Set has taken down or given a key would answer nothing any more.
        subnet_->switch_node().node().port(kOutside + 1).info.port_state = kStateActive;
        for (SmpNode* node : {&subnet_->switch_node(), &subnet_->adapter(0), &subnet_->adapter(1)})
            node->node().end_port(1).info.mkey = 0;
        if (subnet_->next_deadline() <= now_) subnet_->on_timer(now_);
    }
    EXPECT_GT(answered, 400U);
    EXPECT_EQ(quiet, 0U);
    const SmpDrops& drops = subnet_->switch_node().drops();
    EXPECT_GT(drops.route, 0U);
    EXPECT_GT(drops.lid, 0U);
    EXPECT_GT(drops.unexpected, 0U);
}

TEST_F(HostileDatagrams, SubnetAdministrationAnswersOrCountsEach) {
    std::uint64_t answered = 0;
    std::uint64_t responses = 0;
    for (int round = 0; round < 20'000; ++round) {
        AdministrationMad request;
        request.header.method =
            random_.pick(std::array{net::MadMethod::kGet, net::MadMethod::kSet, net::MadMethod::kDelete,
                                    net::MadMethod::kGetTable, net::MadMethod::kGetResponse});
        request.header.attribute_id =
            random_.chance(0.9) ? kMcMemberRecordId : static_cast<std::uint16_t>(random_.next());
        request.component_mask = random_.chance(0.7) ? mc_member::kToCreate : random_.next();
        McMemberRecord record;
        record.group = {
            0xFF, 0x12, 0x40, 0x1B, 0xFF, 0xFF, 0, 0,
            0,    0,    0,    0,    0,    0,    0, static_cast<std::uint8_t>(random_.draw(0, 20))};
        record.port = {0xFE, 0x80, 0, 0, 0, 0, 0, 0,
                       0,    0,    0, 0, 0, 0, 1, static_cast<std::uint8_t>(random_.draw(0, 3))};
        record.join_state = static_cast<std::uint8_t>(random_.draw(0, 15));
        record.pkey = 0xFFFF;
        record.qkey = 5;
        encode(record, request.data);
        std::array<std::byte, net::kMadBytes> bytes{};
        build_administration_mad(request, bytes);
        for (std::uint64_t i = random_.draw(0, 3); i > 0; --i)
            bytes[random_.draw(0, bytes.size() - 1)] = static_cast<std::byte>(random_.next());
        const std::vector<std::byte> exact(bytes.begin(),
                                           bytes.end() - (random_.chance(0.05) ? random_.draw(1, 256) : 0));
        net::Packet packet;
        packet.lrh.slid = static_cast<net::Lid>(random_.draw(0, 5));
        packet.bth.opcode = 0x64;
        packet.bth.dest_qp = kGeneralServicesQp;
        packet.bth.pkey = random_.chance(0.95) ? 0xFFFF : static_cast<std::uint16_t>(random_.next());
        packet.deth = {random_.chance(0.95) ? kGeneralServicesQkey : 1, kGeneralServicesQp};
        packet.payload = exact;
        const auto dropped = [&] {
            const GeneralServices::Drops& drops = general_->drops();
            return drops.pkey + drops.qkey + drops.malformed + drops.management_class + drops.not_master +
                   drops.unexpected;
        };
        const std::uint64_t before = dropped();
        general_->receive(random_.draw(0, 1), packet, ++now_);
        const std::size_t replies = general_->take_outgoing().size();
        ASSERT_EQ(replies + dropped() - before, 1U) << "round " << round;
        answered += replies;
        responses += request.header.method == net::MadMethod::kGetResponse ? 1 : 0;
    }
    EXPECT_GT(answered, 2000U);
    EXPECT_GT(responses, 1000U);
    const GeneralServices::Drops& drops = general_->drops();
    for (const std::uint64_t each : {drops.pkey, drops.qkey, drops.malformed, drops.management_class,
                                     drops.not_master, drops.unexpected})
        EXPECT_GT(each, 0U);
}

// The same through a link: bytes from LRH to VCRC that the link has let through.
TEST_F(JoinedEngines, PacketsThatAreNoDatagramsAreCountedWhereTheyLeaveTheLink) {
    Engine& a = add(0x100, 1);
    Engine& b = add(0x200, 2);
    run(3000 * kMillisecond);
    net::link::LinkPort& link = a.joint->trunk().link(0);
    std::array<std::byte, net::kMadBytes> mad{};
    net::Packet packet;
    packet.lrh = {.dlid = net::kPermissiveLid, .slid = net::kPermissiveLid};
    packet.bth.opcode = 0x64;
    packet.payload = mad;  // of no management class
    ASSERT_EQ(link.enqueue(packet, now_), net::link::Enqueued::kQueued);
    packet.payload = std::span(mad).first(128);  // no datagram at all
    ASSERT_EQ(link.enqueue(packet, now_), net::link::Enqueued::kQueued);
    run(3 * kMillisecond);
    EXPECT_EQ(b.joint->counters().bad_smp, 2U);
    EXPECT_EQ(b.subnet->switch_node().drops().route, 0U);
}

// A switch lets a bad ICRC pass on a data VL (7.4); where the packet leaves the link layer it is counted.
TEST_F(JoinedEngines, ABadIcrcIsCountedWhereAPacketLeavesTheLink) {
    Engine& a = add(0x100, 1);
    Engine& b = add(0x200, 2);
    run(3000 * kMillisecond);
    const net::Lid target = lid(b, 0);
    const std::vector<std::byte> payload(100);
    std::vector<std::byte> bytes(net::encoded_bytes(packet(lid(a, 0), target, 1, payload)));
    net::encode(packet(lid(a, 0), target, 1, payload), bytes);
    bytes[50] ^= std::byte{1};  // forward() makes the VCRC anew
    ASSERT_EQ(a.joint->trunk().link(0).forward(bytes, 0, now_), net::link::Enqueued::kQueued);
    run(3 * kMillisecond);
    EXPECT_TRUE(b.arrived.empty());
    EXPECT_EQ(b.joint->counters().icrc_errors, 1U);
    EXPECT_EQ(b.joint->counters().malformed, 0U);
}

}  // namespace
}  // namespace uib::management

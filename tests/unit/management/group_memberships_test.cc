// Ports of several engines as members of multicast groups: the master, wherever it is, makes the switches
// lead each packet to each member once.
#include <map>

#include "tests/unit/management/joined_engines.h"

namespace uib::management {
namespace {

constexpr net::Lid kMlid = 0xC123;
constexpr std::uint32_t kQkey = 0x42;

class Memberships : public JoinedEngines {
  protected:
    Memberships() {
        group_[0] = 0xFF;
        group_[1] = 0x12;
        group_[15] = 9;
    }
    void join(Engine& engine, std::size_t adapter, net::Lid mlid = kMlid) {
        engine.general->memberships().join(adapter, group_, mlid, kQkey, now_);
    }
    void leave(Engine& engine, std::size_t adapter) {
        engine.general->memberships().leave(adapter, group_, now_);
    }
    net::Lid mlid(const Engine& engine) { return engine.general->memberships().mlid(group_); }

    /// How many good copies of a datagram from `from` each end port of each engine gets.
    std::map<std::pair<const Engine*, unsigned>, unsigned> flood(Engine& from, net::Lid to = kMlid) {
        std::vector<std::byte> payload(600);
        for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 5 + psn_);
        net::Packet datagram = packet(lid(from, 0), to, ++psn_, payload);
        datagram.bth.opcode = 0x64;
        datagram.bth.dest_qp = net::kMulticastQp;
        datagram.has_grh = true;
        datagram.grh.dgid = group_;
        for (const auto& engine : engines_) engine->arrived.clear();
        send(from, datagram);
        run(5 * kMillisecond);
        std::map<std::pair<const Engine*, unsigned>, unsigned> copies;
        for (const auto& engine : engines_)
            for (const Arrived& arrived : engine->arrived) {
                EXPECT_EQ(arrived.psn, psn_);
                EXPECT_EQ(arrived.payload, payload);
                ++copies[{engine.get(), arrived.port}];
            }
        return copies;
    }
    using Copies = std::map<std::pair<const Engine*, unsigned>, unsigned>;

    net::Gid group_{};
    std::uint32_t psn_ = 0;
};

TEST_F(Memberships, MembersBehindAnEngineWithTwoTrunksGetOneCopyEach) {
    Engine& a = add(0x1'0000'0001, 1, {0});
    Engine& between = add(0x2'0000'0001, 2, {0, 1});
    Engine& b = add(0x3'0000'0001, 3, {1});
    run(4000 * kMillisecond);
    join(a, 1);
    join(b, 0);
    run(50 * kMillisecond);
    EXPECT_EQ(flood(a), (Copies{{{&a, 1}, 1}, {{&b, 0}, 1}}));
    EXPECT_EQ(flood(b), (Copies{{{&a, 1}, 1}, {{&b, 0}, 1}}));
    join(between, 1);
    run(50 * kMillisecond);
    EXPECT_EQ(flood(b), (Copies{{{&a, 1}, 1}, {{&between, 1}, 1}, {{&b, 0}, 1}}));
}

TEST_F(Memberships, MembersInThreeEnginesGetOneCopyEachAndNobodyElse) {
    Engine& a = add(0x1'0000'0001, 1);
    Engine& b = add(0x2'0000'0001, 2);
    Engine& c = add(0x3'0000'0001, 3);
    run(4000 * kMillisecond);
    EXPECT_TRUE(flood(b).empty()) << "nobody is a member";
    join(a, 1);
    join(b, 0);
    join(c, 1);
    run(50 * kMillisecond);
    const Copies members = {{{&a, 1}, 1}, {{&b, 0}, 1}, {{&c, 1}, 1}};
    for (Engine* from : {&a, &b, &c}) {
        EXPECT_EQ(mlid(*from), kMlid);
        EXPECT_EQ(flood(*from), members);
        EXPECT_EQ(from->general->memberships().counters().requests, 1U);
        EXPECT_EQ(from->general->memberships().counters().refused, 0U);
    }
    leave(b, 0);
    run(50 * kMillisecond);
    EXPECT_EQ(mlid(b), 0);
    EXPECT_EQ(flood(b), (Copies{{{&a, 1}, 1}, {{&c, 1}, 1}})) << "a sender need not be a member";
    leave(a, 1);
    leave(c, 1);
    run(50 * kMillisecond);
    EXPECT_TRUE(flood(a).empty());
    EXPECT_TRUE(flood(c).empty());
}

TEST_F(Memberships, EnginesAgreeOnTheMastersLid) {
    Engine& a = add(0x1'0000'0001, 1);
    Engine& b = add(0x2'0000'0001, 2);
    run(3000 * kMillisecond);
    join(b, 0, 0xFF00);  // the switches' tables do not reach that far
    run(50 * kMillisecond);
    join(a, 0, 0xC055);
    run(50 * kMillisecond);
    EXPECT_EQ(mlid(b), net::kMulticastLidFirst);
    EXPECT_EQ(mlid(a), mlid(b));
    EXPECT_EQ(flood(a, mlid(a)), (Copies{{{&a, 0}, 1}, {{&b, 0}, 1}}));
}

TEST_F(Memberships, WhoComesAndGoesWithoutEndIsForgottenWhileNoMasterAnswers) {
    Engine& a = add(0x1'0000'0001, 1);
    run(3000 * kMillisecond);
    GroupMemberships memberships(*a.subnet, 1, [](std::size_t /*adapter*/, const AdministrationMad&) {});
    constexpr std::uint64_t kMore = 100;
    net::Gid group = group_;
    const auto comes = [&](std::uint64_t number) {
        group[14] = static_cast<std::uint8_t>(number >> 8);
        group[15] = static_cast<std::uint8_t>(number);
        memberships.join(0, group, 0, kQkey, now_);
        memberships.on_timer(now_);
    };
    for (std::uint64_t i = 0; i < GroupMemberships::kMostLeaving + kMore; ++i) {
        comes(i);
        memberships.leave(0, group, now_);
    }
    EXPECT_EQ(memberships.list().size(), GroupMemberships::kMostLeaving);
    EXPECT_EQ(memberships.counters().abandoned, kMore);
    comes(0);  // one of those that are waiting: there is room for another
    comes(GroupMemberships::kMostLeaving);
    memberships.leave(0, group, now_);
    EXPECT_EQ(memberships.list().size(), GroupMemberships::kMostLeaving + 1);
    EXPECT_EQ(memberships.counters().abandoned, kMore);
    comes(GroupMemberships::kMostLeaving + 1);
    memberships.leave(0, group, now_);
    EXPECT_EQ(memberships.counters().abandoned, kMore + 1);
    // Those that wait are given up, too, and with them the bound is open again.
    while (memberships.next_deadline() < now_ + 60000 * kMillisecond)
        memberships.on_timer(memberships.next_deadline());
    EXPECT_EQ(memberships.list().size(), 1U);
    comes(GroupMemberships::kMostLeaving);
    memberships.leave(0, group, now_);
    EXPECT_EQ(memberships.counters().abandoned, kMore + 1);
}

TEST_F(Memberships, AnAnswerWithoutAMulticastLidGrantsNothing) {
    Engine& a = add(0x1'0000'0001, 1);
    run(3000 * kMillisecond);
    AdministrationMad request;
    GroupMemberships memberships(
        *a.subnet, 1, [&](std::size_t /*adapter*/, const AdministrationMad& mad) { request = mad; });
    memberships.join(0, group_, kMlid, kQkey, now_);
    std::uint64_t refused = 0;
    for (const net::Lid wrong : {net::Lid{0}, net::Lid{5}, net::kPermissiveLid}) {
        memberships.on_timer(memberships.next_deadline());
        AdministrationMad answer = request;
        answer.header.method = net::MadMethod::kGetResponse;
        McMemberRecord record = decode_mc_member_record(answer.data);
        record.mlid = wrong;
        encode(record, answer.data);
        EXPECT_TRUE(memberships.on_response(0, answer, now_));
        EXPECT_EQ(memberships.mlid(group_), 0) << wrong;
        EXPECT_EQ(memberships.counters().refused, ++refused);
        EXPECT_NE(memberships.next_deadline(), kNever) << "it is asked again";
    }
    memberships.on_timer(memberships.next_deadline());
    AdministrationMad answer = request;
    answer.header.method = net::MadMethod::kGetResponse;
    EXPECT_TRUE(memberships.on_response(0, answer, now_));
    EXPECT_EQ(memberships.mlid(group_), kMlid);
}

TEST_F(Memberships, ManyAtOnceAreAskedForInBursts) {
    constexpr unsigned kGroups = 300;
    Engine& a = add(0x1'0000'0001, 1);
    Engine& b = add(0x2'0000'0001, 2);
    run(3000 * kMillisecond);
    const std::uint64_t sweeps = a.subnet->manager()->sweeps();
    for (unsigned i = 0; i < kGroups; ++i) {
        group_[14] = static_cast<std::uint8_t>(i >> 8);
        group_[15] = static_cast<std::uint8_t>(i);
        join(b, 1, static_cast<net::Lid>(net::kMulticastLidFirst + i));
    }
    step();
    EXPECT_EQ(b.general->memberships().counters().requests, GroupMemberships::kBurst);
    run(500 * kMillisecond);
    EXPECT_EQ(b.general->memberships().counters().requests, kGroups);
    for (const GroupMemberships::Status& status : b.general->memberships().list())
        EXPECT_TRUE(status.registered);
    EXPECT_LE(a.subnet->manager()->sweeps() - sweeps, kGroups / 10)
        << "tables are set for many groups at once";
    EXPECT_EQ(flood(a, net::kMulticastLidFirst + kGroups - 1), (Copies{{{&b, 1}, 1}}));
}

TEST_F(Memberships, AMemberThatGoesAndComesBackIsAMemberAgain) {
    Engine& a = add(0x1'0000'0001, 1);
    Engine& b = add(0x2'0000'0001, 2);
    Engine& c = add(0x3'0000'0001, 3);
    run(4000 * kMillisecond);
    join(a, 0);
    join(c, 0);
    run(50 * kMillisecond);
    ASSERT_EQ(flood(b), (Copies{{{&a, 0}, 1}, {{&c, 0}, 1}}));
    c.silent = true;
    run(10'000 * kMillisecond);
    EXPECT_EQ(flood(b), (Copies{{{&a, 0}, 1}}));
    EXPECT_EQ(flood(c), (Copies{{{&c, 0}, 1}})) << "alone, it is its own master";
    c.silent = false;
    run(10'000 * kMillisecond);
    const Copies members = {{{&a, 0}, 1}, {{&c, 0}, 1}};
    for (Engine* from : {&a, &b, &c}) EXPECT_EQ(flood(*from), members);
}

TEST_F(Memberships, AnotherMasterIsToldWhoTheMembersAre) {
    Engine& a = add(0x1'0000'0001, 1);
    Engine& b = add(0x2'0000'0001, 2);
    Engine& c = add(0x3'0000'0001, 3);
    run(4000 * kMillisecond);
    ASSERT_EQ(a.subnet->manager()->state(), SmState::kMaster);
    join(b, 1);
    join(c, 0);
    run(50 * kMillisecond);
    a.silent = true;
    run(10'000 * kMillisecond);
    ASSERT_EQ(b.subnet->manager()->state(), SmState::kMaster);
    EXPECT_EQ(flood(c), (Copies{{{&b, 1}, 1}, {{&c, 0}, 1}}));
    // Who left meanwhile is unknown to the old master, which takes over again.
    leave(b, 1);
    a.silent = false;
    run(10'000 * kMillisecond);
    EXPECT_EQ(flood(a), (Copies{{{&c, 0}, 1}}));
}

TEST_F(Memberships, RequestsThatAreLostAreRepeated) {
    Engine& a = add(0x1'0000'0001, 1);
    Engine& b = add(0x2'0000'0001, 2);
    run(3000 * kMillisecond);
    std::uint32_t state = 7;
    lose = [&state] {
        state = state * 1664525 + 1013904223;
        return (state >> 24) < 51;  // 20 %
    };
    for (int i = 0; i < 10; ++i) {
        join(b, 0);
        join(a, 1);
        run(3000 * kMillisecond);
        EXPECT_EQ(mlid(b), kMlid);
        leave(b, 0);
        leave(a, 1);
        run(5000 * kMillisecond);
        EXPECT_EQ(mlid(b), 0);
    }
    EXPECT_GT(b.general->memberships().counters().unanswered, 0U);
    lose = nullptr;
    run(20'000 * kMillisecond);
    EXPECT_TRUE(flood(a).empty());
    EXPECT_TRUE(flood(b).empty());
}

}  // namespace
}  // namespace uib::management

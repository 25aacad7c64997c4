// Subnet administration: how its datagrams lie in memory, and what the master answers.
#include <gtest/gtest.h>

#include "net/wire/gid.h"
#include "tests/unit/management/subnet_world.h"

namespace uib::management {
namespace {

constexpr std::uint64_t kGuid = 0x10;

net::Gid group_numbered(std::uint8_t number) {
    net::Gid gid{};
    gid[0] = 0xFF;
    gid[1] = 0x12;
    gid[15] = number;
    return gid;
}

TEST(Administration, FieldsAreWhereTheSpecificationHasThem) {
    McMemberRecord record;
    record.group = group_numbered(7);
    record.port = net::gid_of(kDefaultGidPrefix, 0x0123456789ABCDEF);
    record.qkey = 0x01020304;
    record.mlid = 0xC123;
    record.mtu_selector = kExactly;
    record.mtu = 4;
    record.traffic_class = 0x48;
    record.pkey = 0x8001;
    record.rate_selector = kExactly;
    record.rate = 16;
    record.life_time_selector = kExactly;
    record.life_time = 18;
    record.sl = 5;
    record.flow_label = 0xABCDE;
    record.hop_limit = 9;
    record.scope = 2;
    record.join_state = kFullMember;
    record.proxy_join = true;
    AdministrationMad mad;
    mad.header.method = net::MadMethod::kSet;
    mad.header.attribute_id = kMcMemberRecordId;
    mad.sm_key = 0x1122334455667788;
    mad.component_mask = mc_member::kToCreate;
    encode(record, mad.data);
    std::array<std::byte, net::kMadBytes> bytes{};
    build_administration_mad(mad, bytes);
    const auto expect_at = [&](std::size_t at, std::initializer_list<unsigned> wanted) {
        for (const unsigned byte : wanted) EXPECT_EQ(std::to_integer<unsigned>(bytes[at++]), byte) << at - 1;
    };
    expect_at(0, {1, 0x03, 2, 0x02});
    expect_at(16, {0x00, 0x38});
    expect_at(36, {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88});
    expect_at(48, {0, 0, 0, 0, 0, 0x01, 0x30, 0xC7});
    expect_at(56, {0xFF, 0x12});
    expect_at(56 + 15, {7});
    expect_at(56 + 16, {0xFE, 0x80});
    expect_at(56 + 24, {0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF});
    expect_at(56 + 32, {1, 2, 3, 4, 0xC1, 0x23, 0x84, 0x48, 0x80, 0x01, 0x90, 0x92});
    expect_at(56 + 44, {0x5A, 0xBC, 0xDE, 0x09, 0x21, 0x80, 0, 0});
    AdministrationMad back;
    ASSERT_EQ(parse_administration_mad(bytes, back), net::MadError::kNone);
    EXPECT_EQ(back.component_mask, mad.component_mask);
    EXPECT_EQ(back.sm_key, mad.sm_key);
    std::array<std::byte, kRecordBytes> again{};
    encode(decode_mc_member_record(back.data), again);
    EXPECT_EQ(again, mad.data);
    bytes[1] = std::byte{0x04};
    EXPECT_EQ(parse_administration_mad(bytes, back), net::MadError::kClass);
    EXPECT_EQ(parse_administration_mad(std::span(bytes).first(255), back), net::MadError::kLength);
}

class Master : public ::testing::Test {
  protected:
    Master() {
        world_.add({.guid = kGuid, .adapters = 2, .externals = 0});
        world_.start(0);
        record_.group = group_numbered(1);
        record_.port = net::gid_of(kDefaultGidPrefix, kGuid + 1);
        record_.mlid = 0xC0AB;
        record_.qkey = 0x42;
        record_.join_state = kFullMember;
    }
    SubnetManager& manager() { return *world_[0].subnet->manager(); }
    /// The answer to a request from the second adapter, if `from` does not say another LID.
    AdministrationMad ask(net::MadMethod method, std::uint64_t components, net::Lid from = 2) {
        AdministrationMad request;
        request.header.method = method;
        request.header.attribute_id = attribute_;
        request.header.transaction_id = 77;
        request.component_mask = components;
        encode(record_, request.data);
        const auto reply = manager().on_administration(request, from, world_.now());
        world_.run_for(1);
        EXPECT_TRUE(reply);
        EXPECT_EQ(reply->header.transaction_id, 77U);
        return *reply;
    }
    std::uint16_t status(net::MadMethod method, std::uint64_t components, net::Lid from = 2) {
        return ask(method, components, from).header.status;
    }

    SubnetWorld world_{1};
    McMemberRecord record_;
    std::uint16_t attribute_ = kMcMemberRecordId;
};

TEST_F(Master, TheFirstMemberMakesTheGroupAndTheLastEndsIt) {
    const AdministrationMad reply = ask(net::MadMethod::kSet, mc_member::kToCreate | mc_member::kMlid);
    EXPECT_EQ(reply.header.status, 0);
    EXPECT_EQ(reply.header.method, net::MadMethod::kGetResponse);
    const McMemberRecord given = decode_mc_member_record(reply.data);
    EXPECT_EQ(given.mlid, 0xC0AB);
    EXPECT_EQ(given.mtu, 5);
    EXPECT_EQ(given.qkey, 0x42U);
    EXPECT_EQ(given.scope, 2);
    EXPECT_EQ(given.join_state, kFullMember);
    EXPECT_EQ(world_[0].fabric.members(0xC0AB), std::vector<SubnetWorld::PortIndex>{1});
    EXPECT_EQ(status(net::MadMethod::kGet, mc_member::kGroup), 0);
    const AdministrationMad left = ask(net::MadMethod::kDelete, mc_member::kToName);
    EXPECT_EQ(left.header.status, 0);
    EXPECT_EQ(left.header.method, net::MadMethod::kDeleteResponse);
    EXPECT_TRUE(world_[0].fabric.members(0xC0AB).empty());
    EXPECT_EQ(status(net::MadMethod::kGet, mc_member::kGroup), kSaNoRecords);
    EXPECT_EQ(status(net::MadMethod::kDelete, mc_member::kToName), kSaInvalidRequest);
}

TEST_F(Master, AGroupHasOneLidWhateverLaterMembersWant) {
    EXPECT_EQ(status(net::MadMethod::kSet, mc_member::kToCreate | mc_member::kMlid), 0);
    record_.port = net::gid_of(kDefaultGidPrefix, kGuid);
    record_.mlid = 0xC0CD;
    const AdministrationMad reply = ask(net::MadMethod::kSet, mc_member::kToCreate | mc_member::kMlid, 1);
    EXPECT_EQ(reply.header.status, 0);
    EXPECT_EQ(decode_mc_member_record(reply.data).mlid, 0xC0AB);
    EXPECT_EQ(world_[0].fabric.members(0xC0AB), (std::vector<SubnetWorld::PortIndex>{0, 1}));
}

TEST_F(Master, ALidThatTheSwitchesDoNotHaveIsNotGiven) {
    record_.mlid = net::kMulticastLidFirst + net::InternalSwitch::kMulticastCap;
    const AdministrationMad reply = ask(net::MadMethod::kSet, mc_member::kToCreate | mc_member::kMlid);
    EXPECT_EQ(decode_mc_member_record(reply.data).mlid, net::kMulticastLidFirst);
}

TEST_F(Master, AGroupWithoutALidOfItsOwnGetsTheLowestThatNoGroupHas) {
    const auto lid_of = [&](std::uint8_t number, std::uint64_t components) {
        record_.group = group_numbered(number);
        return decode_mc_member_record(ask(net::MadMethod::kSet, components).data).mlid;
    };
    const auto leave = [&](std::uint8_t number) {
        record_.group = group_numbered(number);
        EXPECT_EQ(status(net::MadMethod::kDelete, mc_member::kToName), 0);
    };
    constexpr net::Lid kFirst = net::kMulticastLidFirst;
    record_.mlid = kFirst + 1;
    EXPECT_EQ(lid_of(1, mc_member::kToCreate | mc_member::kMlid), kFirst + 1) << "wanted";
    EXPECT_EQ(lid_of(2, mc_member::kToCreate | mc_member::kMlid), kFirst + 1) << "two groups may share one";
    EXPECT_EQ(lid_of(3, mc_member::kToCreate), kFirst);
    EXPECT_EQ(lid_of(4, mc_member::kToCreate), kFirst + 2);
    leave(1);
    EXPECT_EQ(lid_of(5, mc_member::kToCreate), kFirst + 3) << "the other group still has it";
    leave(3);
    leave(2);
    EXPECT_EQ(lid_of(6, mc_member::kToCreate), kFirst);
    EXPECT_EQ(lid_of(7, mc_member::kToCreate), kFirst + 1);
    EXPECT_EQ(lid_of(8, mc_member::kToCreate), kFirst + 4);
}

TEST_F(Master, SendersOnlyGetNoCopies) {
    EXPECT_EQ(status(net::MadMethod::kSet, mc_member::kToCreate | mc_member::kMlid), 0);
    record_.port = net::gid_of(kDefaultGidPrefix, kGuid);
    record_.join_state = kSendOnlyMember;
    EXPECT_EQ(status(net::MadMethod::kSet, mc_member::kToName, 1), 0);
    EXPECT_EQ(world_[0].fabric.members(0xC0AB), std::vector<SubnetWorld::PortIndex>{1});
}

TEST_F(Master, GroupsBeyondTheLastMulticastLidAreRefused) {
    constexpr std::uint8_t kPort = kGuid + 1;
    for (unsigned number = 0; number < 0x3FFF; ++number) {
        record_.group[13] = static_cast<std::uint8_t>(number >> 8);
        record_.group[14] = static_cast<std::uint8_t>(number);
        ASSERT_EQ(manager().join(record_, kPort, world_.now()), record_.mlid) << number;
    }
    record_.group = group_numbered(2);
    EXPECT_EQ(status(net::MadMethod::kSet, mc_member::kToCreate | mc_member::kMlid), kSaNoResources);
    record_.group = group_numbered(1);
    EXPECT_EQ(status(net::MadMethod::kDelete, mc_member::kToName), 0);
    record_.group = group_numbered(2);
    EXPECT_EQ(status(net::MadMethod::kSet, mc_member::kToCreate | mc_member::kMlid), 0)
        << "there is room again";
}

TEST_F(Master, WhatCannotBeIsRefusedWithTheReason) {
    using enum net::MadMethod;
    EXPECT_EQ(status(kSet, mc_member::kToCreate & ~mc_member::kQkey), kSaInsufficientComponents);
    EXPECT_EQ(status(kSet, mc_member::kGroup), kSaInsufficientComponents);
    EXPECT_EQ(status(kDelete, mc_member::kGroup), kSaInsufficientComponents);
    EXPECT_EQ(status(kSet, mc_member::kToCreate, 1), kSaInvalidRequest) << "for another port";
    EXPECT_EQ(status(kGetTable, mc_member::kToCreate), net::kMadMethodNotSupported);
    const McMemberRecord good = record_;
    record_.join_state = kSendOnlyMember;
    EXPECT_EQ(status(kSet, mc_member::kToCreate), kSaInvalidRequest) << "a group without a full member";
    record_ = good;
    record_.group[0] = 0xFE;
    EXPECT_EQ(status(kSet, mc_member::kToCreate), kSaInvalidGid);
    record_ = good;
    record_.port = net::gid_of(kDefaultGidPrefix, 0x999);
    EXPECT_EQ(status(kSet, mc_member::kToCreate), kSaInvalidGid) << "nobody's GUID";
    record_ = good;
    attribute_ = 0x0035;
    EXPECT_EQ(status(kGet, mc_member::kGroup), net::kMadAttributeNotSupported);
}

}  // namespace
}  // namespace uib::management

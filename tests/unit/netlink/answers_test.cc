// The kernel's answers: what they say, and that no length in them is believed.
#include "net/netlink/answers.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include <cstring>
#include <functional>
#include <vector>

#include "tests/simulation/random.h"

namespace uib::net {
namespace {

constexpr int kIndex = 7;
constexpr std::array<std::uint8_t, 4> kFour = {10, 9, 0, 1};
constexpr Gid kFourGid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 9, 0, 1};
constexpr Gid kSix = {0xFD, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
constexpr MacAddress kMac = {2, 0, 0, 0, 0, 0x22};

/// A message as the kernel writes it, in an allocation of exactly its size.
class Message {
  public:
    template <typename Head>
    explicit Message(const Head& head) : buffer_(512) {
        nlmsghdr* message = mnl_nlmsg_put_header(buffer_.data());
        std::memcpy(mnl_nlmsg_put_extra_header(message, sizeof head), &head, sizeof head);
    }
    Message& put(std::uint16_t type, std::span<const std::uint8_t> value) {
        mnl_attr_put(header(), type, value.size(), value.data());
        return *this;
    }
    Message& put(std::uint16_t type, std::uint32_t value) {
        mnl_attr_put_u32(header(), type, value);
        return *this;
    }
    [[nodiscard]] std::vector<char> bytes() const {
        return {buffer_.begin(),
                buffer_.begin() + reinterpret_cast<const nlmsghdr*>(buffer_.data())->nlmsg_len};
    }
    nlmsghdr* header() { return reinterpret_cast<nlmsghdr*>(buffer_.data()); }

  private:
    std::vector<char> buffer_;
};

Message address(unsigned char family, std::uint32_t flags = 0, int index = kIndex) {
    ifaddrmsg head{};
    head.ifa_family = family;
    head.ifa_prefixlen = 24;
    head.ifa_index = static_cast<unsigned>(index);
    Message message(head);
    message.put(IFA_FLAGS, flags);
    return message;
}

TEST(NetlinkAnswers, Addresses) {
    const auto found = read_address(address(AF_INET).put(IFA_LOCAL, kFour).header(), kIndex);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->gid, kFourGid);
    EXPECT_EQ(found->prefix_length, 24);
    EXPECT_EQ(read_address(address(AF_INET6).put(IFA_ADDRESS, kSix).header(), kIndex)->gid, kSix);
    // The own end of a point-to-point interface, not the other.
    const std::array<std::uint8_t, 4> other = {10, 9, 0, 2};
    EXPECT_EQ(
        read_address(address(AF_INET).put(IFA_ADDRESS, other).put(IFA_LOCAL, kFour).header(), kIndex)->gid,
        kFourGid);
    for (const std::uint32_t flag : {IFA_F_TENTATIVE, IFA_F_DADFAILED})
        EXPECT_FALSE(read_address(address(AF_INET6, flag).put(IFA_ADDRESS, kSix).header(), kIndex));
    EXPECT_FALSE(read_address(address(AF_INET, 0, 8).put(IFA_LOCAL, kFour).header(), kIndex));
    EXPECT_FALSE(read_address(address(AF_INET6).put(IFA_ADDRESS, kFour).header(), kIndex)) << "too short";
    EXPECT_FALSE(read_address(address(AF_UNIX).put(IFA_ADDRESS, kSix).header(), kIndex));
    EXPECT_FALSE(read_address(address(AF_INET).header(), kIndex));
}

TEST(NetlinkAnswers, Routes) {
    rtmsg head{};
    head.rtm_family = AF_INET;
    head.rtm_type = RTN_UNICAST;
    EXPECT_TRUE(read_route(Message(head).put(RTA_OIF, kIndex).header(), kIndex).through_here);
    EXPECT_FALSE(read_route(Message(head).put(RTA_OIF, 8).header(), kIndex).through_here);
    EXPECT_FALSE(read_route(Message(head).header(), kIndex).through_here);
    EXPECT_FALSE(read_route(Message(head).header(), kIndex).gateway);
    EXPECT_EQ(read_route(Message(head).put(RTA_GATEWAY, kFour).header(), kIndex).gateway, kFourGid);
    head.rtm_type = RTN_UNREACHABLE;
    EXPECT_FALSE(read_route(Message(head).put(RTA_OIF, kIndex).header(), kIndex).through_here);
}

TEST(NetlinkAnswers, Neighbours) {
    ndmsg head{};
    head.ndm_state = NUD_REACHABLE;
    EXPECT_EQ(read_neighbour(Message(head).put(NDA_LLADDR, kMac).header())->mac, kMac);
    EXPECT_FALSE(read_neighbour(Message(head).put(NDA_LLADDR, kMac).header())->stale);
    EXPECT_FALSE(read_neighbour(Message(head).put(NDA_LLADDR, kFour).header())) << "no Ethernet address";
    EXPECT_FALSE(read_neighbour(Message(head).put(NDA_LLADDR, kSix).header())) << "no Ethernet address";
    EXPECT_FALSE(read_neighbour(Message(head).header()));
    head.ndm_state = NUD_STALE;
    EXPECT_TRUE(read_neighbour(Message(head).put(NDA_LLADDR, kMac).header())->stale);
    for (const std::uint16_t state : {NUD_INCOMPLETE, NUD_FAILED, NUD_NONE}) {
        head.ndm_state = state;
        EXPECT_FALSE(read_neighbour(Message(head).put(NDA_LLADDR, kMac).header())) << state;
    }
}

// Under the sanitizers: whatever the bytes are, nothing outside the message is read.
TEST(NetlinkAnswers, BytesThatLieDoNoHarm) {
    simulation::Random random(3);
    ndmsg neighbour{};
    neighbour.ndm_state = NUD_REACHABLE;
    rtmsg route{};
    route.rtm_family = AF_INET6;
    route.rtm_type = RTN_UNICAST;
    const std::vector<std::vector<char>> kinds = {
        address(AF_INET).put(IFA_LOCAL, kFour).put(IFA_ADDRESS, kFour).bytes(),
        address(AF_INET6).put(IFA_ADDRESS, kSix).bytes(),
        Message(route).put(RTA_OIF, kIndex).put(RTA_GATEWAY, kSix).bytes(),
        Message(neighbour).put(NDA_DST, kFour).put(NDA_LLADDR, kMac).bytes()};
    std::uint64_t read = 0;
    std::uint64_t refused = 0;
    for (int round = 0; round < 60'000; ++round) {
        std::vector<char> bytes = random.pick(kinds);
        if (random.chance(0.3)) bytes.resize(random.draw(sizeof(nlmsghdr), bytes.size()));
        for (std::uint64_t i = random.draw(0, 3); i > 0 && bytes.size() > sizeof(nlmsghdr); --i)
            bytes[random.draw(sizeof(nlmsghdr), bytes.size() - 1)] =
                static_cast<char>(random.chance(0.5) ? random.draw(0, 40) : random.next());
        // The message's own length has been compared with what came (mnl_nlmsg_ok).
        const auto length = static_cast<std::uint32_t>(bytes.size());
        std::memcpy(bytes.data(), &length, sizeof length);
        const std::vector<char> exact(bytes);
        const auto* message = reinterpret_cast<const nlmsghdr*>(exact.data());
        const bool any = read_address(message, kIndex).has_value() || read_neighbour(message).has_value() ||
                         read_route(message, kIndex).through_here;
        ++(any ? read : refused);
    }
    EXPECT_GT(read, 1000U);
    EXPECT_GT(refused, 1000U);
}

}  // namespace
}  // namespace uib::net

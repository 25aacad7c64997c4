#include "net/netlink/answers.h"

#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "net/wire/gid.h"

namespace uib::net {
namespace {

/// The fixed part of a message; nullptr if it is shorter.
template <typename Head>
const Head* head_of(const nlmsghdr* message) {
    if (mnl_nlmsg_get_payload_len(message) < sizeof(Head)) return nullptr;
    return static_cast<const Head*>(mnl_nlmsg_get_payload(message));
}

/// Attributes behind the fixed part, by type; the first of each.
template <std::size_t N>
class Attributes {
  public:
    /// mnl_attr_parse() takes a message for as long as its length filled up to whole words.
    Attributes(const nlmsghdr* message, std::size_t header) {
        mnl_attr_parse_payload(mnl_nlmsg_get_payload_offset(message, header),
                               mnl_nlmsg_get_payload_len(message) - header, take, this);
    }
    /// The attribute if it has `bytes` bytes or more, else nullptr.
    [[nodiscard]] const nlattr* get(std::size_t type, std::size_t bytes) const {
        const nlattr* attribute = by_type_[type];
        return attribute != nullptr && mnl_attr_get_payload_len(attribute) >= bytes ? attribute : nullptr;
    }
    [[nodiscard]] std::optional<std::uint32_t> number(std::size_t type) const {
        const nlattr* attribute = get(type, sizeof(std::uint32_t));
        return attribute == nullptr ? std::nullopt : std::optional(mnl_attr_get_u32(attribute));
    }
    [[nodiscard]] std::optional<Gid> address(std::size_t type, int family) const {
        if (family != AF_INET && family != AF_INET6) return std::nullopt;
        const std::size_t bytes = family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr);
        const nlattr* attribute = get(type, bytes);
        if (attribute == nullptr) return std::nullopt;
        Gid gid{};
        if (family == AF_INET) gid[10] = gid[11] = 0xFF;
        std::memcpy(gid.data() + gid.size() - bytes, mnl_attr_get_payload(attribute), bytes);
        return gid;
    }

  private:
    static int take(const nlattr* attribute, void* data) {
        auto& self = *static_cast<Attributes*>(data);
        if (const std::size_t type = mnl_attr_get_type(attribute); type < N && self.by_type_[type] == nullptr)
            self.by_type_[type] = attribute;
        return MNL_CB_OK;
    }
    std::array<const nlattr*, N> by_type_{};
};

}  // namespace

std::optional<HostAddress> read_address(const nlmsghdr* message, int index) {
    const auto* head = head_of<ifaddrmsg>(message);
    if (head == nullptr || static_cast<int>(head->ifa_index) != index) return std::nullopt;
    const Attributes<IFA_MAX + 1> attributes(message, sizeof *head);
    // The two differ at point-to-point interfaces only.
    auto address = attributes.address(IFA_LOCAL, head->ifa_family);
    if (!address) address = attributes.address(IFA_ADDRESS, head->ifa_family);
    const std::uint32_t flags = attributes.number(IFA_FLAGS).value_or(head->ifa_flags);
    if (!address || (flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) != 0) return std::nullopt;
    return HostAddress{*address, head->ifa_prefixlen};
}

HostRoute read_route(const nlmsghdr* message, int index) {
    const auto* head = head_of<rtmsg>(message);
    if (head == nullptr) return {};
    const Attributes<RTA_MAX + 1> attributes(message, sizeof *head);
    const auto interface = attributes.number(RTA_OIF);
    return {head->rtm_type == RTN_UNICAST && interface && static_cast<int>(*interface) == index,
            attributes.address(RTA_GATEWAY, head->rtm_family)};
}

std::optional<HostNeighbour> read_neighbour(const nlmsghdr* message) {
    constexpr unsigned kUsable =
        NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE;
    const auto* head = head_of<ndmsg>(message);
    if (head == nullptr || (head->ndm_state & kUsable) == 0) return std::nullopt;
    const Attributes<NDA_MAX + 1> attributes(message, sizeof *head);
    HostNeighbour neighbour;
    const nlattr* link = attributes.get(NDA_LLADDR, neighbour.mac.size());
    if (link == nullptr || mnl_attr_get_payload_len(link) != neighbour.mac.size()) return std::nullopt;
    std::memcpy(neighbour.mac.data(), mnl_attr_get_payload(link), neighbour.mac.size());
    neighbour.stale = head->ndm_state == NUD_STALE;
    return neighbour;
}

}  // namespace uib::net

#include "engine/verbs/flow_table.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/verbs/rx_hash.h"
#include "net/fabric/ethernet_switch.h"

namespace uib::verbs {
namespace {

constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint16_t kEtherTypeIpv6 = 0x86DD;
constexpr std::uint16_t kEtherTypeVlan = 0x8100;
constexpr std::uint8_t kProtocolTcp = 6;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::size_t kVlanBytes = 4;
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kIpv6Bytes = 40;
constexpr std::size_t kPortBytes = 4;
constexpr std::uint32_t kMaxPriority = 0xFFFF;
constexpr std::uint32_t kAllLayers =
    ipc::kFlowVlan | ipc::kFlowIpv4 | ipc::kFlowIpv6 | ipc::kFlowTcp | ipc::kFlowUdp;

/// What is left of the frame.
class Reader {
  public:
    explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
    [[nodiscard]] std::size_t size() const { return bytes_.size(); }
    [[nodiscard]] std::uint8_t byte(std::size_t at) const { return static_cast<std::uint8_t>(bytes_[at]); }
    [[nodiscard]] std::uint16_t word(std::size_t at) const {
        return static_cast<std::uint16_t>(byte(at) << 8 | byte(at + 1));
    }
    template <std::size_t N>
    void copy(std::uint8_t (&to)[N], std::size_t at, std::size_t count = N) const {
        std::memcpy(to, bytes_.data() + at, count);
    }
    void skip(std::size_t count) { bytes_ = bytes_.subspan(std::min(count, bytes_.size())); }

  private:
    std::span<const std::byte> bytes_;
};

void parse_ports(Reader rest, FrameHeaders& out) {
    const std::uint8_t protocol = out.fields.protocol;
    if ((protocol != kProtocolTcp && protocol != kProtocolUdp) || rest.size() < kPortBytes) return;
    out.layers |= protocol == kProtocolTcp ? ipc::kFlowTcp : ipc::kFlowUdp;
    rest.copy(out.fields.source_port, 0);
    rest.copy(out.fields.destination_port, 2);
}

void parse_ipv4(Reader rest, FrameHeaders& out) {
    if (rest.size() < kIpv4Bytes || rest.byte(0) >> 4 != 4) return;
    const std::size_t header = std::size_t{rest.byte(0) & 0xFU} * 4;
    if (header < kIpv4Bytes || rest.size() < header) return;
    out.layers |= ipc::kFlowIpv4;
    out.fields.traffic_class = rest.byte(1);
    const std::uint16_t fragment = rest.word(6);
    out.fields.ip_flags =
        static_cast<std::uint8_t>(((fragment & 0x4000) != 0 ? 2 : 0) | ((fragment & 0x2000) != 0 ? 4 : 0));
    out.fields.hop_limit = rest.byte(8);
    out.fields.protocol = rest.byte(9);
    rest.copy(out.fields.source_ip, 12, 4);
    rest.copy(out.fields.destination_ip, 16, 4);
    if ((fragment & 0x1FFF) != 0) return;
    rest.skip(header);
    parse_ports(rest, out);
}

void parse_ipv6(Reader rest, FrameHeaders& out) {
    if (rest.size() < kIpv6Bytes || rest.byte(0) >> 4 != 6) return;
    out.layers |= ipc::kFlowIpv6;
    out.fields.traffic_class = static_cast<std::uint8_t>(rest.word(0) >> 4);
    rest.copy(out.fields.flow_label, 0);
    out.fields.flow_label[0] = 0;
    out.fields.flow_label[1] &= 0xF;
    out.fields.protocol = rest.byte(6);
    out.fields.hop_limit = rest.byte(7);
    rest.copy(out.fields.source_ip, 8);
    rest.copy(out.fields.destination_ip, 24);
    rest.skip(kIpv6Bytes);
    parse_ports(rest, out);
}

bool fields_match(const FlowRule& rule, const ipc::FlowFields& fields) {
    const auto* got = reinterpret_cast<const std::uint8_t*>(&fields);
    const auto* value = reinterpret_cast<const std::uint8_t*>(&rule.value);
    const auto* mask = reinterpret_cast<const std::uint8_t*>(&rule.mask);
    for (std::size_t i = 0; i < sizeof fields; ++i)
        if (((got[i] ^ value[i]) & mask[i]) != 0) return false;
    return true;
}

bool same_question(const FlowRule& a, const FlowRule& b) {
    return a.priority == b.priority && a.layers == b.layers &&
           std::memcmp(&a.value, &b.value, sizeof a.value) == 0 &&
           std::memcmp(&a.mask, &b.mask, sizeof a.mask) == 0;
}

void add_receiver(const FlowRule& rule, const FrameHeaders& headers, std::vector<Qp*>& out) {
    Qp* qp = rule.hash != nullptr ? rule.hash->choose(headers) : rule.qp;
    if (std::find(out.begin(), out.end(), qp) == out.end()) out.push_back(qp);
}

bool is_zero(const ipc::FlowFields& fields) {
    constexpr ipc::FlowFields kNothing{};
    return std::memcmp(&fields, &kNothing, sizeof fields) == 0;
}

}  // namespace

FrameHeaders parse_frame(std::span<const std::byte> frame) {
    FrameHeaders out;
    Reader rest(frame);
    if (rest.size() < net::kEthernetHeaderBytes) return out;
    rest.copy(out.fields.destination_mac, 0);
    rest.copy(out.fields.source_mac, 6);
    if (rest.word(12) == kEtherTypeVlan && rest.size() >= net::kEthernetHeaderBytes + kVlanBytes) {
        out.layers |= ipc::kFlowVlan;
        rest.copy(out.fields.vlan_tag, 14);
        rest.skip(kVlanBytes);
    }
    const std::uint16_t type = rest.word(12);
    rest.copy(out.fields.ether_type, 12);
    rest.skip(net::kEthernetHeaderBytes);
    if (type == kEtherTypeIpv4) parse_ipv4(rest, out);
    if (type == kEtherTypeIpv6) parse_ipv6(rest, out);
    return out;
}

int check_flow(const ipc::CreateFlowRequest& request) {
    if (request.port != 1 || request.priority > kMaxPriority ||
        request.type > static_cast<std::uint32_t>(ipc::FlowType::kSniffer) ||
        (request.flags & ~std::uint32_t{ipc::kFlowDontTrap}) != 0 || (request.layers & ~kAllLayers) != 0)
        return EINVAL;
    if (static_cast<ipc::FlowType>(request.type) != ipc::FlowType::kNormal)
        return request.flags == 0 && request.layers == 0 && is_zero(request.mask) ? 0 : EINVAL;
    const bool ipv4 = (request.layers & ipc::kFlowIpv4) != 0, ipv6 = (request.layers & ipc::kFlowIpv6) != 0;
    if (ipv4 && ipv6) return EINVAL;
    if ((request.layers & ipc::kFlowTcp) != 0 && (request.layers & ipc::kFlowUdp) != 0) return EINVAL;
    if ((ipv4 || ipv6) && request.mask.ether_type[0] == 0xFF && request.mask.ether_type[1] == 0xFF) {
        const unsigned type = unsigned{request.value.ether_type[0]} << 8 | request.value.ether_type[1];
        if (type != (ipv4 ? kEtherTypeIpv4 : kEtherTypeIpv6)) return EINVAL;
    }
    return 0;
}

void FlowTable::add(const FlowRule& rule) {
    const auto before = [](const FlowRule* a, const FlowRule* b) {
        return a->type != b->type ? a->type < b->type : a->priority < b->priority;
    };
    rules_.insert(std::upper_bound(rules_.begin(), rules_.end(), &rule, before), &rule);
}

void FlowTable::remove(const FlowRule& rule) {
    std::erase(rules_, &rule);
}

bool FlowTable::match_normal(const FrameHeaders& headers, std::vector<Qp*>& out) const {
    const FlowRule* taker = nullptr;
    for (const FlowRule* rule : rules_) {
        if (rule->type != ipc::FlowType::kNormal) break;
        if (taker != nullptr) {
            if (rule->priority != taker->priority) break;
            if (same_question(*rule, *taker)) add_receiver(*rule, headers, out);
            continue;
        }
        if ((rule->layers & ~headers.layers) != 0 || !fields_match(*rule, headers.fields)) continue;
        add_receiver(*rule, headers, out);
        if ((rule->flags & ipc::kFlowDontTrap) == 0) taker = rule;
    }
    return taker != nullptr;
}

void FlowTable::match(std::span<const std::byte> frame, std::vector<Qp*>& out) const {
    out.clear();
    if (rules_.empty()) return;
    const FrameHeaders headers = parse_frame(frame);
    const bool taken = match_normal(headers, out);
    const bool multicast = (headers.fields.destination_mac[0] & 1) != 0;
    for (auto at = rules_.rbegin(); at != rules_.rend() && (*at)->type != ipc::FlowType::kNormal; ++at) {
        const ipc::FlowType type = (*at)->type;
        if (type == ipc::FlowType::kSniffer || (!taken && type == ipc::FlowType::kAllDefault) ||
            (!taken && multicast && type == ipc::FlowType::kMulticastDefault))
            add_receiver(**at, headers, out);
    }
}

}  // namespace uib::verbs

#include "engine/management/administration_mad.h"

#include <algorithm>
#include <cstring>

#include "net/wire/bytes.h"

namespace uib::management {
namespace {

// Places in the datagram.
constexpr std::size_t kSmKeyAt = 36;
constexpr std::size_t kMaskAt = 48;
constexpr std::size_t kDataAt = 56;

// Places in the record.
constexpr std::size_t kPortAt = 16;
constexpr std::size_t kQkeyAt = 32;
constexpr std::size_t kMlidAt = 36;
constexpr std::size_t kMtuAt = 38;
constexpr std::size_t kTrafficClassAt = 39;
constexpr std::size_t kPkeyAt = 40;
constexpr std::size_t kRateAt = 42;
constexpr std::size_t kLifeTimeAt = 43;
constexpr std::size_t kFlowAt = 44;  // SL, flow label, hop limit
constexpr std::size_t kScopeAt = 48;
constexpr std::size_t kProxyAt = 49;

constexpr std::uint32_t kFlowLabelMask = 0xFFFFF;
constexpr std::byte kProxyBit{0x80};

std::byte selected(std::uint8_t selector, std::uint8_t value) {
    return static_cast<std::byte>(selector << 6 | (value & 0x3F));
}

}  // namespace

void build_administration_mad(const AdministrationMad& mad, std::span<std::byte, net::kMadBytes> out) {
    std::fill(out.begin(), out.end(), std::byte{0});
    net::build_mad_header(mad.header, out.first<net::kMadHeaderBytes>());
    net::store_be<8>(&out[kSmKeyAt], mad.sm_key);
    net::store_be<8>(&out[kMaskAt], mad.component_mask);
    std::copy(mad.data.begin(), mad.data.end(), out.begin() + kDataAt);
}

net::MadError parse_administration_mad(std::span<const std::byte> bytes, AdministrationMad& out) {
    out = AdministrationMad{};
    const net::MadError error = net::parse_mad(bytes, out.header);
    if (error != net::MadError::kNone) return error;
    if (out.header.management_class != net::kClassSubnAdministration) return net::MadError::kClass;
    out.sm_key = net::load_be<std::uint64_t>(&bytes[kSmKeyAt]);
    out.component_mask = net::load_be<std::uint64_t>(&bytes[kMaskAt]);
    std::copy_n(bytes.begin() + kDataAt, kRecordBytes, out.data.begin());
    return net::MadError::kNone;
}

void encode(const McMemberRecord& record, std::span<std::byte, kRecordBytes> out) {
    std::fill(out.begin(), out.end(), std::byte{0});
    std::memcpy(out.data(), record.group.data(), record.group.size());
    std::memcpy(&out[kPortAt], record.port.data(), record.port.size());
    net::store_be<4>(&out[kQkeyAt], record.qkey);
    net::store_be<2>(&out[kMlidAt], record.mlid);
    out[kMtuAt] = selected(record.mtu_selector, record.mtu);
    out[kTrafficClassAt] = std::byte{record.traffic_class};
    net::store_be<2>(&out[kPkeyAt], record.pkey);
    out[kRateAt] = selected(record.rate_selector, record.rate);
    out[kLifeTimeAt] = selected(record.life_time_selector, record.life_time);
    const std::uint32_t flow = static_cast<std::uint32_t>(record.sl & 0xF) << 28 |
                               (record.flow_label & kFlowLabelMask) << 8 | record.hop_limit;
    net::store_be<4>(&out[kFlowAt], flow);
    out[kScopeAt] = static_cast<std::byte>(record.scope << 4 | (record.join_state & 0xF));
    if (record.proxy_join) out[kProxyAt] = kProxyBit;
}

McMemberRecord decode_mc_member_record(std::span<const std::byte, kRecordBytes> in) {
    const auto byte_at = [&](std::size_t at) { return std::to_integer<std::uint8_t>(in[at]); };
    McMemberRecord record;
    std::memcpy(record.group.data(), in.data(), record.group.size());
    std::memcpy(record.port.data(), &in[kPortAt], record.port.size());
    record.qkey = net::load_be<std::uint32_t>(&in[kQkeyAt]);
    record.mlid = net::load_be<std::uint16_t>(&in[kMlidAt]);
    record.mtu_selector = byte_at(kMtuAt) >> 6;
    record.mtu = byte_at(kMtuAt) & 0x3F;
    record.traffic_class = byte_at(kTrafficClassAt);
    record.pkey = net::load_be<std::uint16_t>(&in[kPkeyAt]);
    record.rate_selector = byte_at(kRateAt) >> 6;
    record.rate = byte_at(kRateAt) & 0x3F;
    record.life_time_selector = byte_at(kLifeTimeAt) >> 6;
    record.life_time = byte_at(kLifeTimeAt) & 0x3F;
    const auto flow = net::load_be<std::uint32_t>(&in[kFlowAt]);
    record.sl = static_cast<std::uint8_t>(flow >> 28);
    record.flow_label = flow >> 8 & kFlowLabelMask;
    record.hop_limit = static_cast<std::uint8_t>(flow);
    record.scope = byte_at(kScopeAt) >> 4;
    record.join_state = byte_at(kScopeAt) & 0xF;
    record.proxy_join = (in[kProxyAt] & kProxyBit) != std::byte{0};
    return record;
}

}  // namespace uib::management

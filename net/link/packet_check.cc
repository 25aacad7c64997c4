#include "net/link/packet_check.h"

#include "net/wire/codec.h"
#include "net/wire/crc.h"

namespace uib::net::link {
namespace {

constexpr std::uint32_t kMinRawWords = 5;  // 7.7.8
constexpr std::uint32_t kMinIbaWords = 6;

/// `covered` is LRH to the last byte in front of the VCRC.
bool icrc_is_good(const PacketCheck& check, const LrhFields& lrh, std::span<const std::byte> covered) {
    if (is_raw(lrh.next) || covered.size() < kMinIbaWords * std::size_t{4}) return true;  // has none
    if (check.role == PortRole::kSwitch && lrh.lrh.vl != kVl15) return true;
    const auto invariant = covered.first(covered.size() - kIcrcBytes);
    return link_icrc(invariant, lrh.next == LinkNextHeader::kGlobal) == load_icrc(covered.last<kIcrcBytes>());
}

bool length_is_good(const PacketCheck& check, const LrhFields& lrh, std::size_t covered_bytes) {
    const std::uint32_t least = is_raw(lrh.next) ? kMinRawWords : kMinIbaWords;
    return std::size_t{lrh.words} * 4 == covered_bytes && lrh.words >= least &&
           lrh.words <= max_packet_words(check.mtu_cap);
}

bool dlid_is_good(const PacketCheck& check, Lid dlid) {
    return check.role == PortRole::kSwitch ? dlid != 0 : is_own_dlid(dlid, check.lid, check.lmc);
}

}  // namespace

const char* name_of(PacketError error) {
    switch (error) {
        case PacketError::kNone:
            return "none";
        case PacketError::kVcrc:
            return "vcrc";
        case PacketError::kIcrc:
            return "icrc";
        case PacketError::kLinkVersion:
            return "link_version";
        case PacketError::kLength:
            return "length";
        case PacketError::kDlid:
            return "dlid";
        case PacketError::kVl:
            return "vl";
        case PacketError::kGrhOnVl15:
            return "grh_on_vl15";
    }
    return "unknown";
}

bool is_own_dlid(Lid dlid, Lid lid, std::uint8_t lmc) {
    if (dlid == 0) return false;
    return dlid >= kMulticastLidFirst || dlid >> lmc == lid >> lmc;
}

PacketError check_data_packet(const PacketCheck& check, std::span<const std::byte> bytes, LrhFields& out) {
    if (bytes.size() < kVcrcBytes) return PacketError::kLength;
    const auto covered = bytes.first(bytes.size() - kVcrcBytes);
    if (vcrc(covered) != load_vcrc(bytes.last<kVcrcBytes>())) return PacketError::kVcrc;
    if (covered.size() < kLrhBytes) return PacketError::kLength;
    out = parse_lrh(covered.first<kLrhBytes>());
    if (!icrc_is_good(check, out, covered)) return PacketError::kIcrc;
    if (out.version != 0) return PacketError::kLinkVersion;
    if (!length_is_good(check, out, covered.size())) return PacketError::kLength;
    if (!dlid_is_good(check, out.lrh.dlid)) return PacketError::kDlid;
    const std::uint8_t vl = out.lrh.vl;
    if (vl != kVl15 && vl >= check.data_vls) return PacketError::kVl;
    if (vl == kVl15 && out.next != LinkNextHeader::kLocal) return PacketError::kGrhOnVl15;
    return PacketError::kNone;
}

}  // namespace uib::net::link

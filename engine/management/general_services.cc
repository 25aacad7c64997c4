#include "engine/management/general_services.h"

#include <algorithm>

namespace uib::management {
namespace {

constexpr std::uint8_t kUdSendOnly = 0x64;
constexpr std::uint16_t kDefaultPkey = 0xFFFF;
constexpr std::uint16_t kPkeyBase = 0x7FFF;
/// Engines must not use the same transactions; their GUIDs differ in the bits from 24 on.
constexpr unsigned kTransactionShift = 24;

}  // namespace

GeneralServices::GeneralServices(EngineSubnet& subnet)
    : subnet_(subnet),
      memberships_(subnet, (subnet.port_of(0).guids[0] << kTransactionShift) + 1,
                   [this](std::size_t adapter, const AdministrationMad& request) {
                       const PortInfo& info = subnet_.port_of(adapter).info;
                       send(adapter, static_cast<net::Lid>(info.master_sm_lid), kGeneralServicesQp,
                            static_cast<std::uint8_t>(info.master_sm_sl), kDefaultPkey, request);
                   }) {}

// Both must be members of the partition, one of them a full one (10.9.1).
bool GeneralServices::has_pkey(std::size_t adapter, std::uint16_t pkey) const {
    const std::vector<std::uint16_t>& table = subnet_.port_of(adapter).pkeys;
    return std::any_of(table.begin(), table.end(), [pkey](std::uint16_t own) {
        return (own & kPkeyBase) != 0 && (own & kPkeyBase) == (pkey & kPkeyBase) &&
               ((own | pkey) & ~kPkeyBase) != 0;
    });
}

void GeneralServices::receive(std::size_t adapter, const net::Packet& packet, Time now) {
    if (!has_pkey(adapter, packet.bth.pkey)) {
        ++drops_.pkey;
        return;
    }
    if (packet.bth.opcode != kUdSendOnly || packet.deth.qkey != kGeneralServicesQkey) {
        ++drops_.qkey;
        return;
    }
    AdministrationMad mad;
    const net::MadError error = parse_administration_mad(packet.payload, mad);
    if (error != net::MadError::kNone) {
        ++(error == net::MadError::kClass ? drops_.management_class : drops_.malformed);
        return;
    }
    if (mad.header.is_response()) {
        if (!memberships_.on_response(adapter, mad, now)) ++drops_.unexpected;
        return;
    }
    // The manager is at the first adapter's port.
    SubnetManager* manager = adapter == 0 ? subnet_.manager() : nullptr;
    const auto reply =
        manager == nullptr ? std::nullopt : manager->on_administration(mad, packet.lrh.slid, now);
    if (!reply) {
        ++drops_.not_master;
        return;
    }
    send(adapter, packet.lrh.slid, packet.deth.source_qp, packet.lrh.sl, packet.bth.pkey, *reply);
}

void GeneralServices::send(std::size_t adapter, net::Lid to, std::uint32_t qp, std::uint8_t sl,
                           std::uint16_t pkey, const AdministrationMad& mad) {
    Datagram& out = outgoing_.emplace_back();
    out.adapter = adapter;
    out.packet.lrh.slid = static_cast<net::Lid>(subnet_.port_of(adapter).info.lid);
    out.packet.lrh.dlid = to;
    out.packet.lrh.sl = sl;
    out.packet.bth.opcode = kUdSendOnly;
    out.packet.bth.dest_qp = qp;
    out.packet.bth.pkey = pkey;
    out.packet.deth = {kGeneralServicesQkey, kGeneralServicesQp};
    build_administration_mad(mad, out.mad);
}

}  // namespace uib::management

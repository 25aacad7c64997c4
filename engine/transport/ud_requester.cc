// Datagrams out (IBA 9.8.3.1, fields of Table 63: path from the address vector, Q_Key rule of 10.2.5).
#include <algorithm>

#include "engine/transport/payload.h"
#include "engine/transport/ud_queue_pair.h"
#include "net/wire/gid.h"

namespace uib::transport {
namespace {

/// A Q_Key with this bit in a work request stands for that of the QP.
constexpr std::uint32_t kControlledQkey = 0x80000000;

}  // namespace

PacketMaker::Result UdQueuePair::make(const SendRequest& request, std::uint32_t, std::uint32_t psn,
                                      std::uint32_t) {
    Result result;
    const bool immediate = request.opcode == ipc::WorkOpcode::kSendWithImmediate;
    if (request.opcode != ipc::WorkOpcode::kSend && !immediate) {
        result.status = Status::kLocalQpOperation;
        return result;
    }
    if (request.length > mtu()) {
        result.status = Status::kLocalLength;
        return result;
    }
    set_rate_limit(request.address_vector.static_rate);
    if (admit(1, request.address_vector.dlid) == 0) return result;
    if (burst_bytes(*this, request, request.length, 1) != request.length) return result;
    std::span<const std::byte> view;
    result.status = gather_payload(*this, request, 0, request.length, view);
    if (result.status != Status::kSuccess) return result;
    if (!address_datagram(request)) {
        result.status = Status::kLocalQpOperation;
        return result;
    }
    out_.bth.opcode = net::opcode(net::Service::kUd,
                                  immediate ? net::Operation::kSendOnlyImmediate : net::Operation::kSendOnly);
    out_.bth.psn = psn;
    out_.bth.solicited = (request.flags & ipc::kWorkSolicited) != 0;
    out_.immediate = request.immediate;
    out_.payload = view;
    transmit(out_);
    result.packets = 1;
    result.bytes = request.length;
    result.done = true;
    return result;
}

// False if the address vector names a GID that the port does not have, or one from which no way leads to the
// destination (IPv4 to IPv6 or back).
bool UdQueuePair::address_datagram(const SendRequest& request) {
    const ipc::AddressVector& vector = request.address_vector;
    const unsigned path_bits = vector.source_path_bits & ((1U << port().lmc) - 1);
    out_.lrh.dlid = vector.dlid;
    out_.lrh.slid = static_cast<net::Lid>(parameters_.path.slid | path_bits);
    out_.lrh.sl = vector.sl & 0xF;
    out_.has_grh = vector.is_global != 0;
    if (out_.has_grh) {
        if (!port().gids.empty()) {
            if (vector.sgid_index >= port().gids.size() || port().gids[vector.sgid_index] == net::Gid{})
                return false;
            out_.grh.sgid = port().gids[vector.sgid_index];
        }
        std::copy(std::begin(vector.dgid), std::end(vector.dgid), out_.grh.dgid.begin());
        if (!port().gids.empty() && net::is_ipv4(out_.grh.sgid) != net::is_ipv4(out_.grh.dgid)) return false;
        out_.grh.flow_label = vector.flow_label & 0xFFFFF;
        out_.grh.traffic_class = vector.traffic_class;
        out_.grh.hop_limit = vector.hop_limit;
    }
    out_.bth.dest_qp = request.remote_qpn & net::kMulticastQp;
    const bool controlled = (request.remote_qkey & kControlledQkey) != 0;
    out_.deth = {controlled ? parameters_.qkey : request.remote_qkey, number()};
    return true;
}

}  // namespace uib::transport

// Request packets of UC (IBA 9.8.2.1): as those of RC, without AckReq.
#include <algorithm>

#include "engine/transport/opcodes.h"
#include "engine/transport/payload.h"
#include "engine/transport/uc_queue_pair.h"

namespace uib::transport {

PacketMaker::Result UcQueuePair::make(const SendRequest& request, std::uint32_t offset, std::uint32_t psn,
                                      std::uint32_t budget) {
    Result result;
    if (kind_of(request.opcode) != RequestKind::kMessage ||
        request.opcode == ipc::WorkOpcode::kSendWithInvalidate) {
        result.status = Status::kLocalQpOperation;
        return result;
    }
    if (request.length > kMaxMessageBytes) {
        result.status = Status::kLocalLength;
        return result;
    }
    const std::uint32_t rest = request.length - offset;
    result.bytes = burst_bytes(*this, request, rest, budget);
    if (result.bytes == 0 && rest != 0) return result;
    std::span<const std::byte> view;
    result.status = gather_payload(*this, request, offset, result.bytes, view);
    if (result.status != Status::kSuccess) {
        result.bytes = 0;
        return result;
    }
    result.done = result.bytes == rest;
    do {
        const std::size_t part = std::min<std::size_t>(view.size(), mtu());
        send_packet(request, psn_add(psn, result.packets), view.first(part),
                    offset == 0 && result.packets == 0, result.done && part == view.size());
        view = view.subspan(part);
        ++result.packets;
    } while (!view.empty());
    return result;
}

void UcQueuePair::send_packet(const SendRequest& request, std::uint32_t psn,
                              std::span<const std::byte> payload, bool first, bool last) {
    const net::Operation operation = packet_operation(request.opcode, first, last);
    out_.bth.opcode = net::opcode(net::Service::kUc, operation);
    out_.bth.psn = psn;
    out_.bth.solicited =
        last && (request.flags & ipc::kWorkSolicited) != 0 && request.opcode != ipc::WorkOpcode::kRdmaWrite;
    if (last) out_.immediate = request.immediate;
    if (first && net::is_write(operation)) out_.reth = {request.remote_address, request.rkey, request.length};
    out_.payload = payload;
    transmit(out_);
}

}  // namespace uib::transport

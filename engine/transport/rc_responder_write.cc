// RDMA WRITE, with immediate (IBA 9.4.3, 9.7.4.1.5 R_Key, 9.7.4.1.6 lengths).
//
// The first packet's check covers the whole range of the RETH, so that a WRITE that would run over its region
// leaves no byte; later packets are checked one by one, as the key may have gone meanwhile. Zero length
// checks nothing (C9-88). A message whose bytes are not as many as the RETH says is refused with the packet
// that shows it. Lengths are looked at before the key, as rdma_rxe does. The receive request of an immediate
// is taken with its last packet.
#include "engine/transport/opcodes.h"
#include "engine/transport/rc_responder.h"

namespace uib::transport {

void RcResponder::on_write(const net::Packet& packet) {
    const net::Operation operation = packet.bth.operation();
    if (net::has_immediate(operation) && !take_receive()) return;
    const std::size_t length = packet.payload.size();
    if (starts_message(operation) && !start_write(packet)) return;
    const bool ends = ends_message(operation);
    if (!length_fits(operation, length, machine_.mtu()) ||
        (ends ? length != write_rest_ : length > write_rest_)) {
        refuse(kBadLength);
    } else if (!write_payload(packet)) {
        refuse(kBadKey);
    } else if (ends) {
        finish_write(packet);
    } else {
        open_ = Open::kWrite;
        executed(packet);
    }
}

bool RcResponder::start_write(const net::Packet& packet) {
    if (packet.reth.dma_length > kMaxMessageBytes) {
        refuse(kBadLength);
        return false;
    }
    write_address_ = packet.reth.address;
    write_rkey_ = packet.reth.rkey;
    write_length_ = write_rest_ = packet.reth.dma_length;
    return true;
}

bool RcResponder::write_payload(const net::Packet& packet) {
    const auto length = static_cast<std::uint32_t>(packet.payload.size());
    if (length == 0) return true;
    const bool starts = starts_message(packet.bth.operation());
    memory::Checked checked = check_remote(pd_, write_rkey_, write_address_, starts ? write_rest_ : length,
                                           ipc::kAccessRemoteWrite);
    if (!checked.ok()) return false;
    checked.slice.length = length;
    machine_.mover().scatter(owner_, checked.slice, packet.payload);
    write_address_ += length;
    write_rest_ -= length;
    return true;
}

void RcResponder::finish_write(const net::Packet& packet) {
    const bool immediate = net::has_immediate(packet.bth.operation());
    if (immediate && !flush_writes()) return;
    open_ = Open::kNone;
    msn_ = psn_add(msn_, 1);
    executed(packet);
    if (!immediate) return;
    Completion completion;
    completion.opcode = static_cast<std::uint8_t>(ipc::ReceiveOpcode::kReceiveRdmaWithImmediate);
    completion.flags = ipc::kCqeImmediate;
    if (packet.bth.solicited) completion.flags |= ipc::kCqeSolicited;
    completion.immediate = packet.immediate;
    completion.byte_len = write_length_;
    machine_.receive().complete(completion);
}

}  // namespace uib::transport

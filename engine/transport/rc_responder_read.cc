// RDMA READ at the responder (IBA 9.4.4, 9.7.4.1.4 resources, 9.7.5.1.2 responses, 9.7.5.2 NAK inside them).
#include <algorithm>

#include "engine/transport/aeth.h"
#include "engine/transport/payload.h"
#include "engine/transport/rc_responder.h"

namespace uib::transport {

using net::Operation;

// Room in the ring for a new READ or atomic, or nullptr after refusing it (C9-86).
RcResponder::Saved* RcResponder::save(const net::Packet& packet, std::uint32_t packets) {
    const std::uint32_t oldest = newest_ - depth_;
    const bool full =
        depth_ == 0 || (newest_ - serve_ == depth_ && saved(oldest).pending && !saved(oldest).duplicate);
    if (full) {
        refuse_packet(kNakInvalidRequest, Status::kRemoteInvalidRequest, QpEvent::kAccessError);
        return nullptr;
    }
    if (newest_ - serve_ == depth_) ++serve_;
    Saved& entry = saved(newest_);
    entry.psn = epsn_;
    entry.packets = packets;
    entry.first = entry.next = 0;
    entry.end = packets;
    entry.operation = packet.bth.operation();
    entry.pending = true;
    entry.duplicate = false;
    return &entry;
}

void RcResponder::on_read(const net::Packet& packet) {
    const net::Reth& reth = packet.reth;
    if (!may(ipc::kAccessRemoteRead)) {
        refuse_packet(kNakInvalidRequest, Status::kRemoteInvalidRequest, QpEvent::kRequestError);
        return;
    }
    const std::uint32_t packets =
        std::max(1U, static_cast<std::uint32_t>((std::uint64_t{reth.dma_length} + machine_.mtu() - 1) >>
                                                machine_.mtu_shift()));
    Saved* entry = save(packet, packets);
    if (entry == nullptr) return;
    if (reth.dma_length > kMaxMessageBytes || !packet.payload.empty()) {
        refuse_packet(kNakInvalidRequest, Status::kRemoteInvalidRequest, QpEvent::kAccessError);
        return;
    }
    if (reth.dma_length != 0 && !machine_.keys()
                                     .check_remote(machine_.pd(), machine_.number(), reth.rkey, reth.address,
                                                   reth.dma_length, ipc::kAccessRemoteRead)
                                     .ok()) {
        refuse_packet(kNakRemoteAccess, Status::kRemoteAccess, QpEvent::kAccessError);
        return;
    }
    entry->address = reth.address;
    entry->rkey = reth.rkey;
    entry->length = reth.dma_length;
    ++newest_;
    count_ = std::min(count_ + 1, depth_);
    epsn_ = psn_add(epsn_, packets);
    msn_ = psn_add(msn_, 1);
    ack_pending_ = false;  // the response acknowledges what is older
}

// A burst of response packets; the number sent.
std::uint32_t RcResponder::send_read(Saved& saved, std::uint32_t budget) {
    const std::uint32_t shift = machine_.mtu_shift();
    const std::uint32_t offset = saved.next << shift;
    const std::uint64_t end = std::min<std::uint64_t>(saved.length, std::uint64_t{saved.end} << shift);
    const auto rest = static_cast<std::uint32_t>(end - offset);
    std::uint64_t bytes = std::min<std::uint64_t>({rest, std::uint64_t{budget} << shift, kBurstBytes});
    const std::size_t room = machine_.mover().room();
    if (bytes > room) bytes = room & ~std::uint64_t{machine_.mtu() - 1};
    if (bytes == 0 && rest != 0) return 0;
    std::span<const std::byte> view;
    if (!gather_read(saved, static_cast<std::uint32_t>(bytes), view)) return 0;
    std::uint32_t packets = 0;
    do {
        const std::size_t part = std::min<std::size_t>(view.size(), machine_.mtu());
        const bool first = saved.next == saved.first;
        const bool last = saved.next + 1 == saved.end;
        const Operation operation =
            first ? (last ? Operation::kReadResponseOnly : Operation::kReadResponseFirst)
                  : (last ? Operation::kReadResponseLast : Operation::kReadResponseMiddle);
        out_.bth.opcode = net::opcode(net::Service::kRc, operation);
        out_.bth.psn = psn_add(saved.psn, saved.next);
        if (first || last) fill_aeth(ack_syndrome());
        out_.payload = view.first(part);
        machine_.transmit(out_);
        view = view.subspan(part);
        ++saved.next;
        ++packets;
    } while (!view.empty());
    out_.payload = {};
    if (saved.next == saved.end) saved.pending = false;
    return packets;
}

bool RcResponder::gather_read(Saved& saved, std::uint32_t length, std::span<const std::byte>& view) {
    if (length == 0) return true;
    const std::uint64_t offset = std::uint64_t{saved.next} << machine_.mtu_shift();
    const memory::Checked checked = machine_.keys().check_remote(
        machine_.pd(), machine_.number(), saved.rkey, saved.address + offset, length, ipc::kAccessRemoteRead);
    if (!checked.ok()) {
        fail_read(saved, kNakRemoteAccess, Status::kRemoteAccess, QpEvent::kAccessError);
        return false;
    }
    const auto gathered = machine_.mover().gather(std::span(&checked.slice, 1));
    if (!gathered) {
        fail_read(saved, kNakRemoteOperation, Status::kRemoteOperation, QpEvent::kFatal);
        return false;
    }
    view = *gathered;
    return true;
}

// A NAK takes the place of the packet at fault and of all that was to follow; a duplicate just ends
// (C9-100, C9-108, C9-109).
void RcResponder::fail_read(Saved& saved, std::uint8_t syndrome, Status status, QpEvent event) {
    saved.pending = false;
    if (saved.duplicate) return;
    serve_ = newest_;
    refuse(syndrome, psn_add(saved.psn, saved.next), status, event);
}

}  // namespace uib::transport

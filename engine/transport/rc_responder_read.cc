// RDMA READ at the responder (IBA 9.4.4, 9.7.4.1.4 resources, 9.7.5.1.2 responses, 9.7.5.2 NAK inside them).
#include <algorithm>

#include "engine/transport/aeth.h"
#include "engine/transport/payload.h"
#include "engine/transport/rc_responder.h"

namespace uib::transport {

using net::Operation;

// Room in the ring for a new READ or atomic, or nullptr after refusing it (C9-86): the oldest place is free
// once its response has been sent. keep() makes it count.
RcResponder::Saved* RcResponder::save(const net::Packet& packet, std::uint32_t packets) {
    const std::uint32_t oldest = newest_ - depth_;
    const bool full =
        depth_ == 0 || (newest_ - serve_ == depth_ && saved(oldest).pending && !saved(oldest).duplicate);
    if (full) {
        refuse(kNoReadResources);
        return nullptr;
    }
    if (newest_ - serve_ == depth_) ++serve_;
    Saved& entry = saved(newest_);
    entry.pd = pd_;
    entry.psn = epsn_;
    entry.packets = packets;
    entry.first = entry.next = 0;
    entry.end = packets;
    entry.operation = packet.bth.operation();
    entry.pending = true;
    entry.duplicate = false;
    return &entry;
}

// The request is accepted: its response is owed and acknowledges what is older.
void RcResponder::keep(const Saved& saved) {
    ++newest_;
    count_ = std::min(count_ + 1, depth_);
    epsn_ = psn_add(epsn_, saved.packets);
    msn_ = psn_add(msn_, 1);
    ack_pending_ = false;
}

// The length of the RETH comes before the key: more than 2^31 bytes lie in hardly any region, and the
// requester is to be told of the length (C9-94).
void RcResponder::on_read(const net::Packet& packet) {
    const net::Reth& reth = packet.reth;
    Saved* entry = save(packet, response_packets(reth.dma_length));
    if (entry == nullptr) return;
    if (reth.dma_length > kMaxMessageBytes || !packet.payload.empty()) {
        refuse(kBadLength);
        return;
    }
    if (reth.dma_length != 0 &&
        !check_remote(pd_, reth.rkey, reth.address, reth.dma_length, ipc::kAccessRemoteRead).ok()) {
        refuse(kBadKey);
        return;
    }
    entry->address = reth.address;
    entry->rkey = reth.rkey;
    entry->length = entry->end_byte = reth.dma_length;
    keep(*entry);
}

// A burst of response packets; the number sent.
std::uint32_t RcResponder::send_read(Saved& saved, std::uint32_t budget) {
    const std::uint32_t shift = machine_.mtu_shift();
    const std::uint32_t offset = saved.next << shift;
    const std::uint32_t rest = saved.end_byte - offset;
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
        start_response(first ? (last ? Operation::kReadResponseOnly : Operation::kReadResponseFirst)
                             : (last ? Operation::kReadResponseLast : Operation::kReadResponseMiddle),
                       psn_add(saved.psn, saved.next));
        if (first || last) fill_aeth(ack_syndrome());
        out_.payload = view.first(part);
        machine_.transmit(out_);
        view = view.subspan(part);
        ++saved.next;
        ++packets;
    } while (!view.empty());
    if (saved.next == saved.end) saved.pending = false;
    return packets;
}

bool RcResponder::gather_read(Saved& saved, std::uint32_t length, std::span<const std::byte>& view) {
    if (length == 0) return true;
    const std::uint64_t offset = std::uint64_t{saved.next} << machine_.mtu_shift();
    const memory::Checked checked =
        check_remote(saved.pd, saved.rkey, saved.address + offset, length, ipc::kAccessRemoteRead);
    if (!checked.ok()) {
        fail_read(saved, kBadKey);
        return false;
    }
    const auto gathered = machine_.mover().gather(std::span(&checked.slice, 1));
    if (!gathered) {
        fail_read(saved, kMemoryFailed);
        return false;
    }
    view = *gathered;
    return true;
}

// A NAK takes the place of the packet at fault and of all that was to follow; a duplicate just ends
// (C9-100, C9-108, C9-109).
void RcResponder::fail_read(Saved& saved, const Refusal& refusal) {
    saved.pending = false;
    if (saved.duplicate) {
        ++machine_.count().dropped_duplicates;
        return;
    }
    refuse_response(refusal, psn_add(saved.psn, saved.next));
}

}  // namespace uib::transport

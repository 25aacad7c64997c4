#include "examples/uib_verify/side.h"

#include <poll.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "examples/uib_verify/pattern.h"

namespace uib::verify {

namespace {

constexpr ibv_qp_type kTypes[kServiceCount] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

ibv_device_attr attributes_of(ibv_context& context) {
    ibv_device_attr attributes{};
    kit::check(ibv_query_device(&context, &attributes), "ibv_query_device");
    return attributes;
}

bool has_windows(const ibv_device_attr& attributes) {
    return (attributes.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) !=
           0;
}

}  // namespace

Side::Side(const Options& options, const std::string& device, std::uint64_t seed, std::uint32_t slots,
           std::uint64_t slot_bytes)
    : seed_(seed),
      path_mtu_(options.path_mtu == 0 ? 0 : std::countr_zero(static_cast<unsigned>(options.path_mtu)) - 7),
      context_(kit::open_device(device)),
      pd_(kit::make_pd(*context_)),
      channel_(options.events ? kit::make_channel(*context_) : nullptr),
      cq_(kit::make_cq(*context_,
                       static_cast<int>(std::max(4 * slots, options.queue_pairs * kCounterAdds) + 16),
                       channel_.get())),
      memory_(options.memory, slots * slot_bytes),
      scratch_(kit::MemoryKind::kPrivate, slots * kGrhStride) {
    const ibv_device_attr attributes = attributes_of(*context_);
    int access = kit::kAllAccess;
    if (has_windows(attributes)) access |= IBV_ACCESS_MW_BIND;
    fill_pattern(memory_.bytes(), seed_, 0);
    region_ = kit::register_memory(*pd_, memory_.data(), memory_.size(), access);
    scratch_region_ = kit::register_memory(*pd_, scratch_.data(), scratch_.size(), IBV_ACCESS_LOCAL_WRITE);
    // One entry is kept for the GRH of a datagram.
    own_.pieces = std::min<std::uint32_t>(kMaxPieces, static_cast<std::uint32_t>(attributes.max_sge) - 1);
    own_.datagram_bytes = kit::mtu_bytes(*context_);
    own_.windows = has_windows(attributes) ? 1 : 0;
    own_.memory_address = address_of(0);
    own_.rkey = region_->rkey;
    make_queue_pairs(options, slots);
    if (channel_) kit::check(ibv_req_notify_cq(cq_.get(), 0), "ibv_req_notify_cq");
}

void Side::make_queue_pairs(const Options& options, std::uint32_t slots) {
    kit::QueueSizes sizes;
    sizes.send_requests = sizes.receive_requests = std::max(2 * slots, kCounterAdds);
    sizes.send_pieces = own_.pieces;
    sizes.receive_pieces = own_.pieces + 1;
    for (std::uint32_t service = 0; service < kServiceCount; ++service)
        for (std::uint32_t i = 0; i < options.queue_pairs; ++i)
            queue_pairs_[service].push_back(kit::make_qp(*pd_, *cq_, kTypes[service], sizes));
}

void Side::connect(kit::SideChannel& channel) {
    std::vector<kit::Address> own;
    std::uint32_t psn = static_cast<std::uint32_t>(seed_);
    for (const auto& group : queue_pairs_)
        for (const kit::QueuePair& qp : group) own.push_back(kit::address_of(*qp, psn += 0x12345));
    channel.send(own_);
    channel.send_all(own);
    peer_ = channel.receive<Introduction>();
    const auto theirs = channel.receive_all<kit::Address>();
    if (theirs.size() != own.size()) throw kit::Error("the sides have different numbers of QPs");
    std::size_t next = 0;
    for (const auto& group : queue_pairs_) {
        for (const kit::QueuePair& qp : group) {
            kit::connect_qp(
                *qp, own[next], theirs[next],
                kit::kAllAccess | (own_.windows != 0 && qp->qp_type == IBV_QPT_RC ? IBV_ACCESS_MW_BIND : 0),
                path_mtu_);
            if (qp->qp_type == IBV_QPT_UD) {
                paths_.push_back(kit::make_ah(*pd_, theirs[next]));
                datagram_peers_.push_back(theirs[next].qp_number);
            }
            ++next;
        }
    }
    // Nobody sends before both sides can receive.
    channel.send(Command::kBatch);
    channel.receive<Command>();
}

ibv_qp& Side::queue_pair(Service service, std::uint32_t number) const {
    return *queue_pairs_[static_cast<std::size_t>(service)].at(number);
}

ibv_sge Side::grh_entry(std::uint32_t slot) const {
    return {reinterpret_cast<std::uintptr_t>(scratch_.data()) + slot * kGrhStride, kGrhBytes,
            scratch_region_->lkey};
}

void Side::sleep_until_event(double limit_seconds) {
    pollfd waiting{channel_->fd, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(limit_seconds * 1000)) <= 0) return;
    ibv_cq* queue = nullptr;
    void* its_context = nullptr;
    if (ibv_get_cq_event(channel_.get(), &queue, &its_context) != 0)
        throw kit::Error("ibv_get_cq_event failed");
    ibv_ack_cq_events(queue, 1);
    kit::check(ibv_req_notify_cq(queue, 0), "ibv_req_notify_cq");
}

ibv_wc Side::wait_completion(double limit_seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_seconds);
    ibv_wc completion{};
    while (true) {
        const int count = ibv_poll_cq(cq_.get(), 1, &completion);
        if (count < 0) throw kit::Error("ibv_poll_cq failed");
        if (count == 1) break;
        if (std::chrono::steady_clock::now() > end) throw kit::Error("no completion in time");
        if (channel_) sleep_until_event(limit_seconds);
    }
    if (completion.status != IBV_WC_SUCCESS)
        throw kit::Error(std::string("completion of case ") + std::to_string(completion.wr_id) + ": " +
                         ibv_wc_status_str(completion.status));
    return completion;
}

std::uint64_t Side::checksum(std::span<const Piece> pieces) const {
    Checksum sum;
    for (const Piece& piece : pieces) sum.add(bytes_of(piece));
    return sum.value();
}

void Side::check_guards(const Case& one, std::uint64_t slot, std::span<const Piece> written) const {
    std::vector<Piece> sorted(written.begin(), written.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const Piece& a, const Piece& b) { return a.offset < b.offset; });
    sorted.push_back({slot + one.slot_bytes, 0});
    std::uint64_t from = slot;
    for (const Piece& piece : sorted) {
        const Piece guard{from, piece.offset - from};
        if (const auto at = find_difference(bytes_of(guard), seed_, from))
            throw kit::Error("a byte outside the message was written, at offset " +
                             std::to_string(from + *at - slot) + " of the slot: " + describe(one));
        from = piece.offset + piece.length;
    }
}

void Side::restore(std::span<const Piece> pieces) {
    for (const Piece& piece : pieces) fill_pattern(bytes_of(piece), seed_, piece.offset);
}

std::vector<Piece> first_bytes(std::span<const Piece> pieces, std::uint64_t bytes) {
    std::vector<Piece> first;
    for (const Piece& piece : pieces) {
        const std::uint64_t count = std::min(piece.length, bytes);
        if (count != 0) first.push_back({piece.offset, count});
        bytes -= count;
    }
    return first;
}

std::string describe(const Case& one) {
    std::string text = std::string(traits_of(one.operation).name) + " of " + std::to_string(one.bytes) +
                       " bytes on QP " + std::to_string(one.queue_pair) + ", initiator";
    const auto add = [&text](std::span<const Piece> pieces, std::uint64_t slot) {
        for (const Piece& piece : pieces)
            text += " " + std::to_string(piece.offset - slot) + "+" + std::to_string(piece.length);
    };
    add({one.initiator, one.initiator_count}, one.initiator_slot);
    text += ", target";
    add({one.target, one.target_count}, one.target_slot);
    return text;
}

}  // namespace uib::verify

// Posting random work: operations, sizes at the edges, scatter lists, fences, signalling, and the receives.
#include <algorithm>
#include <array>

#include "tests/simulation/flow.h"

namespace uib::simulation {

using ipc::WorkOpcode;
using transport::SendRequest;

namespace {

constexpr std::uint32_t kInlineLimit = 512;
constexpr std::uint32_t kWordBytes = 8;
constexpr std::uint32_t kDatagramQkey = 0x1234;

constexpr std::array kUnreliable = {WorkOpcode::kSend, WorkOpcode::kSendWithImmediate, WorkOpcode::kRdmaWrite,
                                    WorkOpcode::kRdmaWriteWithImmediate};
constexpr std::array kReliable = {WorkOpcode::kSend,       WorkOpcode::kSendWithImmediate,
                                  WorkOpcode::kRdmaWrite,  WorkOpcode::kRdmaWriteWithImmediate,
                                  WorkOpcode::kRdmaRead,   WorkOpcode::kCompareSwap,
                                  WorkOpcode::kFetchAdd,   WorkOpcode::kRdmaWrite,
                                  WorkOpcode::kRdmaRead,   WorkOpcode::kSend,
                                  WorkOpcode::kAtomicWrite};

/// What a READ or atomic needs at the responder's queue pair.
std::uint32_t right_of(const Message& message) {
    if (message.is_read()) return ipc::kAccessRemoteRead;
    return message.is_atomic() ? std::uint32_t{ipc::kAccessRemoteAtomic} : 0;
}

bool allows(const Qp& responder, std::uint32_t right) {
    return (responder.parameters.access & right) != 0;
}

}  // namespace

void Flow::post(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
        // The message, its place, and a receive with each of a group that may share one adapter.
        const std::uint64_t need = (std::uint64_t{plan_.longest} + 256) * (3 + plan_.datagram_peers.size());
        bool room = from_.adapter->has_room(need) && (to_ == nullptr || to_->adapter->has_room(need));
        for (const Qp* peer : plan_.datagram_peers) room = room && peer->adapter->has_room(need);
        if (!room) return;
        post_one();
    }
}

void Flow::post_one() {
    Random& random = world_.random;
    Message message;
    SendList::Entry entry;
    SendRequest& request = entry.request;
    message.immediate = random.draw32(0, ~0U);
    if (random.chance(0.6)) message.flags |= ipc::kWorkSignaled;
    if (random.chance(0.2)) message.flags |= ipc::kWorkSolicited;
    if (random.chance(0.15)) message.flags |= ipc::kWorkFence;
    if (!plan_window_work(message, request) && !choose(message)) return;
    if (message.opcode == WorkOpcode::kBindWindow || message.opcode == WorkOpcode::kLocalInvalidate) {
        message.flags |= ipc::kWorkSignaled;
    } else if (message.is_read()) {
        plan_read(message, request);
    } else if (message.is_atomic()) {
        plan_atomic(message, request);
    } else if (message.opcode == WorkOpcode::kAtomicWrite) {
        plan_atomic_write(message, request);
    } else {
        plan_payload(message, request);
        if (to_ == nullptr) {
            plan_datagram(message, request);
        } else if (message.is_write()) {
            plan_target(message, request);
        }
    }
    if ((message.flags & ipc::kWorkInline) != 0) entry.inline_data = message.content;
    commit(std::move(message), std::move(entry));
}

bool Flow::choose(Message& message) {
    Random& random = world_.random;
    if (to_ == nullptr) {
        message.opcode = kUnreliable[random.draw(0, 1)];
        return true;
    }
    if (!plan_.reliable) {
        message.opcode = random.pick(kUnreliable);
        return true;
    }
    message.opcode = random.pick(kReliable);
    return right_of(message) == 0 || allows(*to_, right_of(message)) || illegal_due();
}

std::uint32_t Flow::draw_length() {
    Random& random = world_.random;
    const std::uint32_t mtu = plan_.mtu;
    const std::array<std::uint32_t, 14> edges = {0,
                                                 1,
                                                 mtu - 1,
                                                 mtu,
                                                 mtu + 1,
                                                 2 * mtu - 1,
                                                 2 * mtu,
                                                 2 * mtu + 1,
                                                 3 * mtu,
                                                 ipc::kAutoInlineBytes - 1,
                                                 ipc::kAutoInlineBytes,
                                                 ipc::kAutoInlineBytes + 1,
                                                 2,
                                                 4 * mtu};
    std::uint32_t length = random.pick(edges);
    if (random.chance(0.5)) length = random.draw32(0, random.chance(0.6) ? mtu : plan_.longest);
    return std::min(length, plan_.longest);
}

// The bytes of a SEND or WRITE: noise of its own, or what an earlier READ brings, behind a fence.
void Flow::plan_payload(Message& message, SendRequest& request) {
    Random& random = world_.random;
    Adapter& here = *from_.adapter;
    message.length = draw_length();
    if (plan_.reliable && last_read_ && random.chance(0.3) &&
        messages_[*last_read_].length <= plan_.longest) {
        const Message& read = messages_[*last_read_];
        message.length = read.length;
        message.local = read.local;
        message.content = read.content;
        message.flags |= ipc::kWorkFence;
    } else {
        message.local = here.allocate(random, message.length, plan_.most_pieces);
        message.content = here.bytes(message.local);
        if (message.length <= kInlineLimit && random.chance(0.3)) message.flags |= ipc::kWorkInline;
    }
    request.length = message.length;
}

void Flow::plan_target(Message& message, SendRequest& request) {
    Random& random = world_.random;
    Adapter& there = *to_->adapter;
    request.rkey = there.key();
    // Several WRITEs into one place: the last one must win, also when packets are repeated.
    const bool may_overlap =
        plan_.overlaps && message.length <= 2 * plan_.mtu && message.opcode == WorkOpcode::kRdmaWrite;
    if (may_overlap && random.chance(0.4)) {
        if (shared_area_.length == 0) {
            shared_area_.length = 2 * plan_.mtu + 64;
            shared_area_.at = there.allocate(random, shared_area_.length, 1).front().at;
        }
        message.overlaps = true;
        message.target = shared_area_.at + random.draw(0, shared_area_.length - message.length);
    } else if (!use_window(message, request)) {
        const Pieces place = there.allocate(random, message.length + 1, 1);
        message.target = place.front().at;
        last_write_ = messages_.size();
    }
    request.remote_address = Adapter::kBase + message.target;
}

void Flow::plan_read(Message& message, SendRequest& request) {
    Random& random = world_.random;
    Adapter& there = *to_->adapter;
    request.rkey = there.key();
    message.length = draw_length();
    if (last_write_ && random.chance(0.3)) {  // what a WRITE has just put there
        const Message& write = messages_[*last_write_];
        message.length = write.length;
        message.target = write.target;
        message.content = write.content;
    } else if (!use_window(message, request)) {
        const Pieces place = there.allocate(random, message.length + 1, 1);
        message.target = place.front().at;
    }
    if (message.content.empty()) message.content = there.bytes({{message.target, message.length}});
    message.local = from_.adapter->allocate(random, message.length, plan_.most_pieces);
    request.length = message.length;
    request.remote_address = Adapter::kBase + message.target;
    last_read_ = messages_.size();
}

void Flow::plan_atomic(Message& message, SendRequest& request) {
    Random& random = world_.random;
    Adapter& there = *to_->adapter;
    message.length = kWordBytes;
    message.target = words_.pick(random, there);
    words_.add(there, message.target, {this, messages_.size()});
    message.local = {{from_.adapter->allocate_word(), kWordBytes}};
    message.operand = random.next();
    message.swap = random.next();
    if (message.opcode == WorkOpcode::kCompareSwap && random.chance(0.7)) {
        std::memcpy(&message.operand, there.at(message.target), kWordBytes);
    }
    request.length = kWordBytes;
    request.rkey = there.key();
    request.remote_address = Adapter::kBase + message.target;
    request.compare_add = message.operand;
    request.swap = message.swap;
}

void Flow::plan_atomic_write(Message& message, SendRequest& request) {
    Adapter& here = *from_.adapter;
    message.length = request.length = kWordBytes;
    message.local = {{here.allocate_word(), kWordBytes}};
    message.content = here.bytes(message.local);
    if (world_.random.chance(0.5)) message.flags |= ipc::kWorkInline;
    message.target = to_->adapter->allocate_word();
    request.rkey = to_->adapter->key();
    request.remote_address = Adapter::kBase + message.target;
}

void Flow::plan_datagram(Message& message, SendRequest& request) {
    Random& random = world_.random;
    const bool multicast = random.chance(0.2);
    Qp* peer = random.pick(plan_.datagram_peers);
    request.remote_qkey = kDatagramQkey;
    request.remote_qpn = multicast ? net::kMulticastQp : peer->number();
    request.address_vector.dlid = multicast ? net::kMulticastLidFirst + 1 : peer->adapter->lid();
    request.address_vector.is_global = multicast || random.chance(0.3) ? 1 : 0;
    request.address_vector.hop_limit = 1;
    const net::Gid gid = multicast ? net::Gid{0xFF, 0x12, 0x40, 0x1B} : peer->parameters.path.grh.sgid;
    std::copy(gid.begin(), gid.end(), request.address_vector.dgid);
    if (!multicast) {
        message.recipients = {peer};
        return;
    }
    for (Adapter& adapter : world_.adapters)
        for (Qp& qp : adapter.qps)
            if (qp.in_group) message.recipients.push_back(&qp);
}

void Flow::commit(Message&& message, SendList::Entry&& entry) {
    const std::size_t index = messages_.size();
    SendRequest& request = entry.request;
    request.wr_id = index;
    request.index = from_.sends.producer();
    request.opcode = message.opcode;
    request.immediate =
        message.opcode == WorkOpcode::kSendWithInvalidate || message.opcode == WorkOpcode::kLocalInvalidate
            ? request.immediate
            : message.immediate;
    if (!plan_.xrc_receives.empty()) {
        message.receives = world_.random.pick(plan_.xrc_receives);
        request.xrc_srq = message.receives->number;
    }
    if ((message.flags & ipc::kWorkInline) == 0) {
        request.sge_count = static_cast<std::uint32_t>(message.local.size());
        for (std::size_t i = 0; i < message.local.size(); ++i)
            request.sge[i] = {Adapter::kBase + message.local[i].at, message.local[i].length,
                              from_.adapter->key()};
    }
    if (illegal_due()) spoil(message, entry);
    request.flags = message.flags;
    post_receives(message);
    TraceEntry note;
    note.at = world_.now();
    note.what = Happening::kPost;
    note.id = index;
    note.opcode = static_cast<std::uint8_t>(message.opcode);
    note.status = static_cast<std::uint8_t>(message.illegal);
    note.lid = from_.adapter->lid();
    note.qp = from_.number();
    note.length = message.length;
    world_.trace.note(note);
    messages_.push_back(std::move(message));
    from_.sends.entries.push_back(std::move(entry));
}

void Flow::post_receives(const Message& message) {
    Random& random = world_.random;
    if (to_ == nullptr) {
        for (Qp* peer : message.recipients)
            if (random.chance(0.85))
                post_receive(*peer->receives, *peer->adapter, plan_.longest + net::kGrhBytes);
        return;
    }
    if (!message.takes_receive()) return;
    ReceiveList& list = message.receives != nullptr ? *message.receives : *to_->receives;
    if (!plan_.reliable && random.chance(0.1)) return;
    std::uint32_t length = plan_.longest;
    if (plan_.reliable && !list.shared()) {
        length = message.length + (random.chance(0.3) ? random.draw32(0, 100) : 0);
        if (message.illegal == Illegal::kTooLong) length = message.length - 1;
    }
    post_receive(list, *to_->adapter, length);
}

void Flow::post_receive(ReceiveList& list, Adapter& adapter, std::uint32_t length) {
    Random& random = world_.random;
    Pieces pieces = adapter.allocate(random, length, plan_.most_pieces);
    if (list.late.empty() && !random.chance(plan_.late_receives)) {
        list.post(std::move(pieces));
        return;
    }
    list.late.push_back(std::move(pieces));
    constexpr Time kLatest = 600'000;
    world_.at(world_.now() + random.draw(1, kLatest), [&list] {
        list.post(std::move(list.late.front()));
        list.late.pop_front();
    });
}

}  // namespace uib::simulation

// What is left to judge when nothing happens any more, and what memory must hold then.
#include <algorithm>

#include "tests/simulation/flow.h"

namespace uib::simulation {

using ipc::WorkOpcode;
using transport::QpState;

Flow::Fate Flow::fate(std::size_t index) const {
    if (messages_[index].confirmed) return Fate::kDone;
    return index >= illegal_ ? Fate::kNever : Fate::kPerhaps;
}

void Flow::finish(Images& images) {
    finish_sends();
    for (std::size_t i = 0; i < messages_.size() && !world_.failed(); ++i) {
        settle_local(i, images.at(from_.adapter));
        if (to_ != nullptr) settle_remote(i, images.at(to_->adapter));
        settle_arrivals(messages_[i], images);
    }
}

void Flow::finish_sends() {
    const QpState state = from_.machine->state();
    if (from_.machine->send_consumed() - from_.sends.base != messages_.size())
        return wrong("requests are left in the send queue", next_done_);
    if (broken_) {
        if (next_done_ != messages_.size()) return wrong("a request did not complete", next_done_);
        if (state != QpState::kError && state != QpState::kSqe)
            return wrong("no error state after an error", next_done_);
        return;
    }
    for (std::size_t i = next_done_; i < messages_.size(); ++i)
        if (messages_[i].signaled()) return wrong("a signaled request did not complete", i);
    confirm_until(messages_.size());
    next_done_ = messages_.size();
    const bool may_fail = reverse != nullptr && (reverse->illegal_ != ~std::size_t{0} || reverse->broken_);
    if (state == QpState::kError && !may_fail) wrong("an error state without an error", next_done_);
    if (!plan_.reliable) return;
    for (std::size_t i = next_receive_; i < messages_.size(); ++i)
        if (messages_[i].takes_receive()) return wrong("a message was not received", i);
}

// Whole packets from the start are new, the rest is as it was.
bool Flow::partly(const Adapter& adapter, const Pieces& pieces, const Message& message) const {
    const std::vector<std::byte> now = adapter.bytes(pieces);
    std::vector<std::byte> before;
    for (const Piece& piece : pieces)
        before.insert(before.end(), adapter.initial.begin() + static_cast<std::ptrdiff_t>(piece.at),
                      adapter.initial.begin() + static_cast<std::ptrdiff_t>(piece.at + piece.length));
    for (std::size_t cut = 0;; cut += plan_.mtu) {
        const auto at = static_cast<std::ptrdiff_t>(std::min(cut, now.size()));
        if (std::equal(now.begin(), now.begin() + at, message.content.begin()) &&
            std::equal(now.begin() + at, now.end(), before.begin() + at))
            return true;
        if (cut >= now.size()) return false;
    }
}

// READs and atomics write into the requester's memory.
void Flow::settle_local(std::size_t index, Image& image) {
    const Message& message = messages_[index];
    if (!message.is_read() && !message.is_atomic()) return;
    if (message.confirmed) {
        if (message.is_read()) {
            image.put(message.local, message.content);
        } else {
            image.put(message.local, std::as_bytes(std::span(&message.original, 1)));
        }
    } else if (index <= illegal_ && message.illegal == Illegal::kNone) {
        if (message.is_read() && !partly(*from_.adapter, message.local, message))
            wrong("bytes of a READ that failed", index);
        image.leave_open(message.local);
    }
}

void Flow::settle_remote(std::size_t index, Image& image) {
    const Message& message = messages_[index];
    if (!message.is_write()) return;
    const Piece target{message.target, message.length};
    const bool arrives =
        plan_.perfect && message.opcode == WorkOpcode::kRdmaWrite && message.illegal == Illegal::kNone;
    const bool whole = message.confirmed && (plan_.reliable || arrives);
    if (whole) {
        image.put(target, message.content.data());
    } else if (message.illegal == Illegal::kNone && (index < illegal_ || !plan_.reliable)) {
        if (!partly(*to_->adapter, {target}, message)) wrong("bytes of a WRITE that did not end", index);
        image.leave_open(target);
    } else if (message.illegal == Illegal::kLocalKey) {
        image.leave_open(target);
    }
}

void Flow::settle_arrivals(const Message& message, Images& images) {
    for (const Message::Arrival& arrival : message.arrivals) {
        const ReceiveList::Buffer& buffer = arrival.list->buffers[arrival.buffer];
        Image& image = images.at(arrival.at->adapter);
        std::vector<std::byte> whole(message.content.begin(), message.content.begin() + message.length);
        if (to_ == nullptr) {  // behind a GRH or its place, which is not looked at
            const std::vector<std::byte> found = arrival.at->adapter->bytes(buffer.pieces);
            whole.insert(whole.begin(), found.begin(), found.begin() + net::kGrhBytes);
        } else if (!plan_.reliable) {
            image.leave_open(buffer.pieces);  // an earlier message may have been cut off in it
        }
        if (!message.is_write()) image.put(buffer.pieces, whole);
    }
}

}  // namespace uib::simulation

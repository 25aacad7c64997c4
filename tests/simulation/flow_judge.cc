// Judging completions at the moment they are made.
#include <algorithm>

#include "tests/simulation/flow.h"

namespace uib::simulation {

using ipc::ReceiveOpcode;
using ipc::WorkOpcode;
using transport::Completion;
using transport::QpState;
using transport::Status;

void Flow::wrong(const std::string& what, std::size_t index) {
    std::string text =
        what + ": request #" + std::to_string(index) + " of qp " + std::to_string(from_.number());
    if (index < messages_.size())
        text += " (" + work_name(static_cast<std::uint8_t>(messages_[index].opcode)) + ')';
    world_.fail(text);
}

void Flow::on_sent(const Completion& completion) {
    const std::size_t index = completion.wr_id;
    if (index >= messages_.size() || index < next_done_)
        return wrong("completed twice, or never posted", index);
    const Message& message = messages_[index];
    if (completion.opcode != static_cast<std::uint8_t>(message.opcode))
        return wrong("completion's opcode", index);
    if (broken_) {
        if (completion.status != Status::kFlushed) return wrong("not flushed after an error", index);
        if (index != next_done_) return wrong("flushes are out of order or incomplete", index);
    } else {
        for (std::size_t i = next_done_; i < index; ++i)
            if (messages_[i].signaled()) return wrong("a signaled request did not complete", i);
        confirm_until(index);
        if (completion.status == Status::kSuccess) {
            if (!message.signaled()) return wrong("an unsignaled request completed", index);
            if (message.is_read() && completion.byte_len != message.length) return wrong("bytes read", index);
            confirm_until(index + 1);
        } else {
            broken_ = true;
            judge_error(index, completion.status);
        }
    }
    next_done_ = index + 1;
}

void Flow::judge_error(std::size_t index, Status status) {
    const Message& message = messages_[index];
    const QpState state = from_.machine->state();
    const bool peer_lost = to_ != nullptr && to_->machine->state() == QpState::kError;
    switch (status) {
        case Status::kFlushed:
            if (state != QpState::kError && state != QpState::kSqe)
                wrong("flushed outside of an error state", index);
            return;
        case Status::kRetryExceeded:
            if (!plan_.may_break && !peer_lost) wrong("retries ran out though the path is good", index);
            return;
        case Status::kRnrRetryExceeded:
            if (!plan_.may_starve) wrong("RNR retries ran out though they are without limit", index);
            return;
        default:
            if (!expected(message.illegal, status))
                wrong("completed with status " + std::to_string(static_cast<int>(status)), index);
    }
}

// All before `end` were executed, and the requester may rely on it.
void Flow::confirm_until(std::size_t end) {
    for (std::size_t i = next_done_; i < end && !world_.failed(); ++i) {
        if (!messages_[i].confirmed) confirm(i);
    }
}

void Flow::confirm(std::size_t index) {
    Message& message = messages_[index];
    message.confirmed = true;
    if (!plan_.reliable) {
        if (is_local(message.illegal)) wrong("an illegal request succeeded", index);
        return;
    }
    if (message.illegal != Illegal::kNone) return wrong("an illegal request succeeded", index);
    if (message.takes_receive() && next_receive_ <= index)
        return wrong("acknowledged and not received", index);
    if (message.is_write()) verify_writes(index + 1);
    if (message.is_read() && from_.adapter->bytes(message.local) != message.content)
        wrong("bytes read", index);
    if (message.is_atomic())
        std::memcpy(&message.original, from_.adapter->at(message.local.front().at), sizeof message.original);
    window_work_done(index);
}

bool Flow::in_memory(const Message& message) const {
    const std::byte* at = to_->adapter->at(message.target);
    return std::equal(message.content.begin(), message.content.begin() + message.length, at);
}

void Flow::verify_writes(std::size_t end) {
    for (; verified_ < end; ++verified_) {
        const Message& message = messages_[verified_];
        if (message.is_write() && !message.overlaps && message.length != 0 && !in_memory(message))
            return wrong("a WRITE is not in memory", verified_);
    }
}

void Flow::on_received(Qp& at, ReceiveList& list, const Completion& completion) {
    if (completion.status != Status::kSuccess) {
        judge_receive_error(at, completion);
    } else if (refused_) {
        wrong("received after an error", completion.wr_id);
    } else if (plan_.reliable) {
        match_reliable(at, list, completion);
    } else {
        match_unreliable(at, list, completion);
    }
}

void Flow::judge_receive_error(Qp& at, const Completion& completion) {
    const bool in_error = at.machine->state() == QpState::kError;
    if (!plan_.reliable && !in_error) {  // UC on a shared queue: a message that did not end
        if (!at.receives->shared()) wrong("a receive ended in error", completion.wr_id);
        return;
    }
    if (completion.status == Status::kFlushed) {
        if (!in_error) wrong("a receive was flushed outside of the error state", completion.wr_id);
    } else {
        if (refused_) wrong("a second receive in error", completion.wr_id);
        if (illegal_ == ~std::size_t{0}) wrong("a receive ended in error", completion.wr_id);
    }
    refused_ = true;
}

bool Flow::fits(const Message& message, const Qp& at, const ReceiveList::Buffer& buffer,
                const Completion& completion) const {
    const bool write = message.is_write();
    const auto opcode = write ? ReceiveOpcode::kReceiveRdmaWithImmediate : ReceiveOpcode::kReceive;
    const std::uint32_t front = to_ == nullptr ? net::kGrhBytes : 0;
    const bool immediate = message.has_immediate();
    const bool invalidate = message.opcode == WorkOpcode::kSendWithInvalidate;
    if (completion.opcode != static_cast<std::uint8_t>(opcode) ||
        completion.byte_len != message.length + front ||
        immediate != ((completion.flags & ipc::kCqeImmediate) != 0) ||
        invalidate != ((completion.flags & ipc::kCqeInvalidate) != 0) ||
        ((immediate || invalidate) && completion.immediate != message.immediate) ||
        ((message.flags & ipc::kWorkSolicited) != 0) != ((completion.flags & ipc::kCqeSolicited) != 0))
        return false;
    if (write) return in_memory(message);
    const std::vector<std::byte> got = at.adapter->bytes(buffer.pieces);
    return std::equal(message.content.begin(), message.content.begin() + message.length, got.begin() + front);
}

void Flow::match_reliable(Qp& at, ReceiveList& list, const Completion& completion) {
    while (next_receive_ < messages_.size() && !messages_[next_receive_].takes_receive()) ++next_receive_;
    if (next_receive_ == messages_.size())
        return wrong("received and not sent, or received twice", next_receive_);
    Message& message = messages_[next_receive_];
    if (next_receive_ >= illegal_) return wrong("received in spite of an error", next_receive_);
    if (message.receives != nullptr && message.receives != &list)
        return wrong("in the wrong SRQ", next_receive_);
    if (!fits(message, at, list.buffers[completion.wr_id], completion))
        return wrong("what was received is not what was sent", next_receive_);
    message.arrivals.push_back({&at, &list, static_cast<std::uint32_t>(completion.wr_id)});
    verify_writes(next_receive_);
    if (message.opcode == WorkOpcode::kSendWithInvalidate && reverse != nullptr)
        reverse->windows_.front().state = WindowState::kFree;
    ++next_receive_;
}

// The first message that it can be. Short messages look alike; the first is right if any is.
void Flow::match_unreliable(Qp& at, ReceiveList& list, const Completion& completion) {
    const ReceiveList::Buffer& buffer = list.buffers[completion.wr_id];
    for (std::size_t i = plan_.ordered ? next_receive_ : 0; i < messages_.size(); ++i) {
        Message& message = messages_[i];
        if (!message.takes_receive() || message.illegal != Illegal::kNone) continue;
        if (!message.arrivals.empty() && !plan_.repeats) continue;
        if (!fits(message, at, buffer, completion)) continue;
        message.arrivals.push_back({&at, &list, static_cast<std::uint32_t>(completion.wr_id)});
        if (plan_.ordered) next_receive_ = i + 1;
        return;
    }
    wrong("a message arrived that was not sent, or not whole, or twice, or out of order", messages_.size());
}

bool Flow::claims_datagram(Qp& at, const Completion& completion) {
    ReceiveList& list = *at.receives;
    const ReceiveList::Buffer& buffer = list.buffers[completion.wr_id];
    for (Message& message : messages_) {
        if (message.illegal != Illegal::kNone) continue;
        if (std::find(message.recipients.begin(), message.recipients.end(), &at) == message.recipients.end())
            continue;
        const auto arrived = std::count_if(message.arrivals.begin(), message.arrivals.end(),
                                           [&](const auto& arrival) { return arrival.at == &at; });
        if ((arrived != 0 && !plan_.repeats) || !fits(message, at, buffer, completion)) continue;
        message.arrivals.push_back({&at, &list, static_cast<std::uint32_t>(completion.wr_id)});
        return true;
    }
    return false;
}

}  // namespace uib::simulation

// Work that must fail, and how (IBA 9.9.2, 9.9.3, 11.6.2).
#include "tests/simulation/flow.h"

namespace uib::simulation {

using ipc::WorkOpcode;
using transport::Status;

namespace {

constexpr std::uint32_t kNoKey = 0x00BAD000;
constexpr std::uint32_t kNoWindow = 999;
constexpr std::uint32_t kOtherQkey = 0x4321;

}  // namespace

// Something that can be wrong with this operation; kNone if nothing fits.
Illegal Flow::choose_illegal(const Message& message) {
    std::vector<Illegal> choices;
    const bool inlined = (message.flags & ipc::kWorkInline) != 0;
    const bool local_work =
        message.opcode == WorkOpcode::kBindWindow || message.opcode == WorkOpcode::kLocalInvalidate;
    if (message.opcode == WorkOpcode::kSendWithInvalidate || message.opcode == WorkOpcode::kLocalInvalidate)
        return Illegal::kNone;
    if (to_ != nullptr && message.is_read() && (to_->parameters.access & ipc::kAccessRemoteRead) == 0)
        return Illegal::kRemoteRights;
    if (to_ != nullptr && message.is_atomic() && (to_->parameters.access & ipc::kAccessRemoteAtomic) == 0)
        return Illegal::kRemoteRights;
    choices.push_back(Illegal::kMalformed);
    if (local_work) return Illegal::kBadBind;
    if (message.length > 0 && !inlined) choices.push_back(Illegal::kLocalKey);
    if (to_ == nullptr) {
        choices.push_back(Illegal::kWrongQkey);
        choices.push_back(Illegal::kTooLong);
        return world_.random.pick(choices);
    }
    const bool remote = message.is_write() || message.is_read() || message.is_atomic();
    if (remote && message.length > 0) {
        choices.push_back(Illegal::kRemoteKey);
        choices.push_back(Illegal::kRemoteBounds);
    }
    if (!plan_.reliable) return world_.random.pick(choices);
    if (message.is_atomic()) choices.push_back(Illegal::kMisaligned);
    if (message.is_read()) choices.push_back(Illegal::kInlineRead);
    const bool own_queue =
        message.receives == nullptr && to_->receives != nullptr && !to_->receives->shared();
    if (message.takes_receive() && !message.is_write() && message.length > 0 && own_queue)
        choices.push_back(Illegal::kTooLong);
    return world_.random.pick(choices);
}

void Flow::spoil(Message& message, SendList::Entry& entry) {
    message.illegal = choose_illegal(message);
    transport::SendRequest& request = entry.request;
    switch (message.illegal) {
        case Illegal::kNone:
            return;
        case Illegal::kRemoteKey:
            request.rkey = kNoKey;
            break;
        case Illegal::kRemoteBounds:
            request.remote_address = Adapter::kBase + to_->adapter->initial.size() - message.length + 8;
            break;
        case Illegal::kRemoteRights:
            break;
        case Illegal::kMisaligned:
            request.remote_address += 4;
            break;
        case Illegal::kTooLong:
            if (to_ != nullptr) break;  // the receive will be shorter
            message.flags &= static_cast<std::uint8_t>(~ipc::kWorkInline);
            message.length = request.length = plan_.mtu + 1;
            request.sge_count = 1;
            request.sge[0] = {Adapter::kBase, request.length, from_.adapter->key()};
            break;
        case Illegal::kLocalKey:
            for (std::uint32_t i = 0; i < request.sge_count; ++i) request.sge[i].lkey = kNoKey;
            break;
        case Illegal::kMalformed:
            request.malformed = true;
            break;
        case Illegal::kInlineRead:
            message.flags |= ipc::kWorkInline;
            break;
        case Illegal::kBadBind:
            request.window_handle = kNoWindow;
            break;
        case Illegal::kWrongQkey:
            request.remote_qkey = kOtherQkey;
            break;
    }
    illegal_ = messages_.size();
}

void Flow::recover() {
    constexpr std::uint32_t kNextIllegal = 5;
    broken_ = false;
    illegal_ = ~std::size_t{0};
    plan_.illegal_at = static_cast<std::uint32_t>(messages_.size()) + kNextIllegal;
}

bool Flow::expected(Illegal what, Status status) {
    switch (what) {
        case Illegal::kRemoteKey:
        case Illegal::kRemoteBounds:
            return status == Status::kRemoteAccess;
        case Illegal::kRemoteRights:
            return status == Status::kRemoteAccess || status == Status::kRemoteInvalidRequest;
        case Illegal::kMisaligned:
            return status == Status::kRemoteInvalidRequest;
        case Illegal::kTooLong:
            return status == Status::kRemoteInvalidRequest || status == Status::kLocalLength;
        case Illegal::kLocalKey:
            return status == Status::kLocalProtection;
        case Illegal::kMalformed:
        case Illegal::kInlineRead:
            return status == Status::kLocalQpOperation;
        case Illegal::kBadBind:
            return status == Status::kWindowBind;
        case Illegal::kNone:
        case Illegal::kWrongQkey:
            break;
    }
    return false;
}

}  // namespace uib::simulation

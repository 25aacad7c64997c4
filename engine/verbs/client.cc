#include "engine/verbs/client.h"

#include <cerrno>
#include <new>

#include "engine/ipc/control_cq.h"

namespace uib::verbs {

Client::Client(std::uint32_t id, int pid, memory::MappedSpace::Credentials credentials,
               ipc::UniqueFd async_pipe)
    : id_(id),
      pid_(pid),
      credentials_(credentials),
      async_pipe_(std::move(async_pipe), sizeof(ipc::AsyncEvent)) {}

Client::~Client() {
    arena_.free(staging_block_);
    arena_.free(doorbell_block_);
}

int Client::start() {
    const auto block = arena_.allocate(sizeof(ipc::DoorbellMap));
    if (!block) return errno != 0 ? errno : ENOMEM;
    doorbell_block_ = *block;
    doorbells_ = new (block->memory) ipc::DoorbellMap{};
    return 0;
}

int Client::alloc_staging(const ipc::AllocStagingRequest& request, ipc::AllocStagingReply& reply) {
    constexpr std::uint64_t kPage = 4096;
    if (request.bytes == 0 || request.bytes > ipc::kMaxStagingBytes || request.bytes % kPage != 0)
        return EINVAL;
    if (staging_block_.memory != nullptr) return EEXIST;
    const auto block = arena_.allocate(request.bytes);
    if (!block) return errno != 0 ? errno : ENOMEM;
    staging_block_ = *block;
    reply = {block->location, block->size};
    return 0;
}

std::optional<std::uint32_t> Client::take_slot(Qp& qp) {
    if (free_slots_.empty()) {
        if (slots_.size() >= ipc::kDoorbellSlots) return std::nullopt;
        slots_.push_back(&qp);
        return static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot] = &qp;
    return slot;
}

void Client::free_slot(std::uint32_t slot) {
    slots_[slot] = nullptr;
    free_slots_.push_back(slot);
}

void Client::raise(std::uint32_t type, std::uint64_t element, std::uint32_t* counter) {
    const ipc::AsyncEvent event{element, type, 0};
    if (!async_pipe_.write(&event)) return;
    if (counter != nullptr) ++*counter;
    if (async_pipe_.has_backlog()) note_backlog();
}

void Client::condemn(const char* why) {
    if (condemned_ == nullptr) condemned_ = why;
    call_attention();
}

}  // namespace uib::verbs

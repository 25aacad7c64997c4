#include "engine/verbs/event_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace uib::verbs {

EventPipe::EventPipe(ipc::UniqueFd write_end, std::size_t record_bytes)
    : fd_(std::move(write_end)), record_bytes_(record_bytes) {
    const int flags = ::fcntl(fd_.get(), F_GETFL);
    if (flags < 0 || ::fcntl(fd_.get(), F_SETFL, flags | O_NONBLOCK) != 0) broken_ = true;
}

bool EventPipe::try_write(const void* record) {
    while (true) {
        // A record is below PIPE_BUF, so it goes in whole or not at all.
        if (::write(fd_.get(), record, record_bytes_) == static_cast<ssize_t>(record_bytes_)) return true;
        if (errno == EINTR) continue;
        if (errno != EAGAIN) broken_ = true;
        return false;
    }
}

bool EventPipe::write(const void* record) {
    if (backlog_.empty() && !broken_ && try_write(record)) return true;
    if (broken_ || backlog_.size() >= kMaxBacklog) {
        ++dropped_;
        return false;
    }
    const auto* bytes = static_cast<const std::byte*>(record);
    backlog_.emplace_back(bytes, bytes + record_bytes_);
    return true;
}

bool EventPipe::retry() {
    while (!backlog_.empty() && !broken_ && try_write(backlog_.front().data())) backlog_.pop_front();
    if (broken_) backlog_.clear();
    return backlog_.empty();
}

bool EventPipe::reader_gone() const {
    pollfd poll_fd{fd_.get(), 0, 0};
    return broken_ || (::poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & POLLERR) != 0);
}

std::uint32_t EventPipe::purge(std::uint64_t element) {
    return static_cast<std::uint32_t>(std::erase_if(backlog_, [&](const auto& record) {
        return std::memcmp(record.data(), &element, sizeof element) == 0;
    }));
}

}  // namespace uib::verbs

#include "provider/events.h"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

namespace uib::provider {
namespace {

constexpr int kFullPipePatienceMs = 1000;

std::vector<std::byte> drain(int fd, std::size_t record_bytes) {
    std::vector<std::byte> all;
    std::array<std::byte, 4096> buffer;
    while (true) {
        const std::size_t wanted = buffer.size() / record_bytes * record_bytes;
        const ssize_t got = ::read(fd, buffer.data(), wanted);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return all;
        all.insert(all.end(), buffer.begin(), buffer.begin() + got);
    }
}

}  // namespace

bool EventPipe::open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
    return ::fcntl(ends[1], F_SETFL, O_WRONLY | O_NONBLOCK) == 0;
}

int purge_events(int read_fd, int write_fd, std::size_t record_bytes, std::uint64_t element,
                 bool (*only_types_of)(std::uint32_t type)) {
    // A second description of the same pipe: O_NONBLOCK on it is not seen by threads that wait in libibverbs.
    char path[40];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", read_fd);
    const UniqueFd reader(::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!reader) return -1;
    const std::vector<std::byte> records = drain(reader.get(), record_bytes);
    int purged = 0;
    for (std::size_t at = 0; at + record_bytes <= records.size(); at += record_bytes) {
        std::uint64_t named = 0;
        std::uint32_t type = 0;
        std::memcpy(&named, &records[at], sizeof named);
        if (only_types_of != nullptr) std::memcpy(&type, &records[at + sizeof named], sizeof type);
        if (named == element && (only_types_of == nullptr || only_types_of(type))) {
            ++purged;
        } else {
            write_event(write_fd, &records[at], record_bytes);
        }
    }
    return purged;
}

bool is_cq_event(std::uint32_t type) {
    return type == IBV_EVENT_CQ_ERR;
}

bool is_srq_event(std::uint32_t type) {
    return type == IBV_EVENT_SRQ_ERR || type == IBV_EVENT_SRQ_LIMIT_REACHED;
}

bool is_wq_event(std::uint32_t type) {
    return type == IBV_EVENT_WQ_FATAL;
}
bool is_qp_event(std::uint32_t type) {
    return (type >= IBV_EVENT_QP_FATAL && type <= IBV_EVENT_PATH_MIG_ERR) ||
           type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

std::uint32_t owed_events(bool engine_answered, std::uint32_t written, int purged, std::uint32_t read) {
    if (!engine_answered || purged < 0) return read;
    return written - static_cast<std::uint32_t>(purged);
}

void await_acknowledged(pthread_mutex_t& mutex, pthread_cond_t& cond, const std::uint32_t& acknowledged,
                        std::uint32_t wanted) {
    ::pthread_mutex_lock(&mutex);
    while (static_cast<std::int32_t>(wanted - acknowledged) > 0) ::pthread_cond_wait(&cond, &mutex);
    ::pthread_mutex_unlock(&mutex);
}

bool write_event(int write_fd, const void* record, std::size_t bytes) {
    while (true) {
        const ssize_t written = ::write(write_fd, record, bytes);
        if (written == static_cast<ssize_t>(bytes)) return true;
        if (written < 0 && errno == EINTR) continue;
        if (written >= 0 || errno != EAGAIN) return false;
        pollfd writable{write_fd, POLLOUT, 0};
        if (::poll(&writable, 1, kFullPipePatienceMs) <= 0) return false;
    }
}

}  // namespace uib::provider

#include "engine/daemon/capture_run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace uib::daemon {
namespace {

constexpr int kWantedPipeBytes = 1 << 20;

std::uint64_t unix_nanoseconds() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

CaptureRun::CaptureRun(verbs::Adapter& adapter, Baton& baton, std::uint32_t session, ipc::UniqueFd file,
                       ipc::UniqueFd ended)
    : adapter_(adapter), baton_(baton), session_(session), file_(std::move(file)), ended_(std::move(ended)) {
    struct stat information {};
    regular_ = ::fstat(file_.get(), &information) == 0 && S_ISREG(information.st_mode);
    // A larger pipe bridges the times when the reader or this thread has no CPU; refused, the capture runs
    // on.
    if (!regular_) ::fcntl(file_.get(), F_SETPIPE_SZ, kWantedPipeBytes);
}

CaptureRun::~CaptureRun() {
    stop();
    while (busy() && write_some(kFileBytes)) {
    }
}

void CaptureRun::stop() {
    if (recording_) take(true);
}

void CaptureRun::tick() {
    if (!busy()) return;
    if (recording_ && written_ == pending_.size()) take(false);
    while (written_ < pending_.size() && write_some(kFileBytes) && !regular_) {
    }
    if (!recording_ && written_ == pending_.size()) {
        file_ = ipc::UniqueFd();
        ended_ = ipc::UniqueFd();
    }
}

// The lane's buffer; with `last`, or when the limit is reached, the recording ends.
void CaptureRun::take(bool last) {
    std::vector<std::byte> bytes;
    {
        const Baton::Hold hold(baton_);
        net::Capture& capture = *adapter_.capture();
        last |= capture.done();
        bytes = capture.take(last, unix_nanoseconds());
        packets_ = capture.packets();
        dropped_ = capture.dropped();
        if (last) adapter_.stop_capture();
    }
    recording_ = !last;
    if (written_ == pending_.size()) {
        pending_ = std::move(bytes);
        written_ = 0;
    } else {
        pending_.insert(pending_.end(), bytes.begin(), bytes.end());
    }
}

/// False when nothing is left or nothing more fits.
bool CaptureRun::write_some(std::size_t limit) {
    if (written_ == pending_.size()) return false;
    std::size_t length = std::min(limit, pending_.size() - written_);
    if (!regular_) {
        pollfd writable{file_.get(), POLLOUT, 0};
        if (::poll(&writable, 1, 0) != 1) return false;
        if ((writable.revents & POLLERR) != 0) {
            fail(EPIPE);
            return false;
        }
        length = std::min(length, kPipeBytes);
    }
    const ssize_t count = ::write(file_.get(), pending_.data() + written_, length);
    if (count < 0) {
        if (errno == EINTR || errno == EAGAIN) return errno == EINTR;
        fail(errno);
        return false;
    }
    written_ += static_cast<std::size_t>(count);
    return true;
}

void CaptureRun::fail(int error) {
    error_ = error;
    stop();
    pending_.clear();
    written_ = 0;
    file_ = ipc::UniqueFd();
    ended_ = ipc::UniqueFd();
}

}  // namespace uib::daemon

#include "provider/monitor.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace uib::provider {
namespace {

constexpr std::size_t kStackBytes = 128 * 1024;
constexpr std::size_t kHelperMessageBytes =
    sizeof(ipc::HelperRequest) + ipc::kHelperMaxPieces * sizeof(ipc::HelperPiece);

bool copy_piece(const ipc::HelperPiece& piece, bool to_client, int staging) {
    std::uint64_t done = 0;
    while (done < piece.length) {
        void* memory = reinterpret_cast<void*>(piece.address + done);
        const auto offset = static_cast<off_t>(piece.staging_offset + done);
        const ssize_t copied = to_client ? ::pread(staging, memory, piece.length - done, offset)
                                         : ::pwrite(staging, memory, piece.length - done, offset);
        if (copied < 0 && errno == EINTR) continue;
        if (copied <= 0) return false;
        done += static_cast<std::uint64_t>(copied);
    }
    return true;
}

}  // namespace

ipc::HelperReply copy_pieces(const ipc::HelperRequest& request, const ipc::HelperPiece* pieces, int staging) {
    ipc::HelperReply reply{request.tag, 0, 0, 0};
    for (std::uint32_t i = 0; i < request.count; ++i) {
        if (copy_piece(pieces[i], request.to_client != 0, staging)) continue;
        reply.status = EFAULT;
        reply.failed_piece = i;
        break;
    }
    return reply;
}

int Monitor::start(int control_fd, UniqueFd helper, UniqueFd staging, std::function<void()> on_death) {
    control_fd_ = control_fd;
    helper_ = std::move(helper);
    staging_ = std::move(staging);
    on_death_ = std::move(on_death);
    stop_.reset(::eventfd(0, EFD_CLOEXEC));
    if (!stop_) return errno;
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, kStackBytes);
    int error = ::pthread_create(&thread_, &attributes, enter, this);
    ::pthread_attr_destroy(&attributes);
    // A program with much thread-local storage needs more than the small stack.
    if (error != 0) error = ::pthread_create(&thread_, nullptr, enter, this);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    running_ = error == 0;
    return error;
}

void Monitor::stop() {
    if (!running_) return;
    running_ = false;
    const std::uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof one);
    ::pthread_join(thread_, nullptr);
}

void* Monitor::enter(void* self) {
    static_cast<Monitor*>(self)->run();
    return nullptr;
}

void Monitor::run() {
    std::array<pollfd, 3> watched{
        {{control_fd_, POLLRDHUP, 0}, {stop_.get(), POLLIN, 0}, {helper_.get(), POLLIN, 0}}};
    while (true) {
        if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
        if (watched[1].revents != 0) return;
        if (watched[2].revents != 0 && !serve_helper()) watched[2].fd = -1;
        if ((watched[0].revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) != 0) {
            on_death_();
            watched[0].fd = -1;
            watched[2].fd = -1;
        }
    }
}

bool Monitor::serve_helper() {
    alignas(ipc::HelperRequest) std::array<std::byte, kHelperMessageBytes> buffer;
    const ssize_t got = ::recv(helper_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    ipc::HelperRequest request{};
    if (static_cast<std::size_t>(got) < sizeof request) return false;
    std::memcpy(&request, buffer.data(), sizeof request);
    std::array<ipc::HelperPiece, ipc::kHelperMaxPieces> pieces;
    const std::size_t bytes = request.count * sizeof(ipc::HelperPiece);
    if (request.count > pieces.size() || static_cast<std::size_t>(got) != sizeof request + bytes)
        return false;
    std::memcpy(pieces.data(), buffer.data() + sizeof request, bytes);
    const ipc::HelperReply reply = copy_pieces(request, pieces.data(), staging_.get());
    return ::send(helper_.get(), &reply, sizeof reply, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof reply);
}

}  // namespace uib::provider

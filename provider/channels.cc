#include "provider/channels.h"

#include <dlfcn.h>
#include <rdma/rdma_user_ioctl.h>
#include <unistd.h>
// The ioctl's command numbers build on the definitions above.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "provider/events.h"

namespace uib::provider {
namespace {

extern "C" {
using ShimWrite = int (*)(void* cookie, const void* buffer, std::size_t length);
using ShimIoctl = int (*)(void* cookie, unsigned long request, void* argument);
using ShimRegister = void (*)(int cmd_fd, ShimWrite, ShimIoctl, void* cookie);
using ShimUnregister = void (*)(int cmd_fd);

int forward_write(void* cookie, const void* buffer, std::size_t length) {
    return static_cast<Channels*>(cookie)->on_write(buffer, length);
}
int forward_ioctl(void* cookie, unsigned long request, void* argument) {
    return static_cast<Channels*>(cookie)->on_ioctl(request, argument);
}
}

int refuse(int why) {
    errno = why;
    return -1;
}

}  // namespace

Channels::~Channels() {
    unregister_from_shim();
}

void Channels::register_with_shim(int cmd_fd, int (*async_fd_of)(void*), void* cookie) {
    async_fd_of_ = async_fd_of;
    cookie_ = cookie;
    const auto enter = reinterpret_cast<ShimRegister>(::dlsym(RTLD_DEFAULT, "uib_shim_register_context"));
    if (enter == nullptr) return;
    cmd_fd_ = cmd_fd;
    enter(cmd_fd, forward_write, forward_ioctl, this);
}

void Channels::unregister_from_shim() {
    if (cmd_fd_ < 0) return;
    const auto leave = reinterpret_cast<ShimUnregister>(::dlsym(RTLD_DEFAULT, "uib_shim_unregister_context"));
    if (leave != nullptr) leave(cmd_fd_);
    cmd_fd_ = -1;
}

int Channels::on_write(const void* buffer, std::size_t length) {
    ib_uverbs_cmd_hdr header{};
    ib_uverbs_create_comp_channel request{};
    if (length < sizeof header + sizeof request) return refuse(ENOSYS);
    std::memcpy(&header, buffer, sizeof header);
    if (header.command != IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL) return refuse(ENOSYS);
    std::memcpy(&request, static_cast<const char*>(buffer) + sizeof header, sizeof request);
    const int fd = create();
    if (fd < 0) return -1;
    ib_uverbs_create_comp_channel_resp response{};
    response.fd = static_cast<std::uint32_t>(fd);
    std::memcpy(reinterpret_cast<void*>(request.response), &response, sizeof response);
    return static_cast<int>(length);
}

int Channels::create() {
    EventPipe pipe;
    if (!pipe.open()) return -1;
    ipc::HandleBody made{};
    const int fds[] = {pipe.write_end.get()};
    if (const int error = control_.query(ipc::Operation::kCreateChannel, made, fds); error != 0)
        return refuse(error);
    const int read_fd = pipe.read_end.release();
    std::optional<std::uint32_t> stale;
    {
        const std::lock_guard lock(mutex_);
        const auto old = std::find_if(channels_.begin(), channels_.end(), [read_fd](const Channel& channel) {
            return channel.read_fd == read_fd;
        });
        if (old != channels_.end()) {
            stale = old->handle;
            channels_.erase(old);
        }
        channels_.push_back({read_fd, made.handle, std::move(pipe.write_end)});
    }
    if (stale) (void)control_.command(ipc::Operation::kDestroyChannel, ipc::HandleBody{*stale, 0});
    return read_fd;
}

int Channels::on_ioctl(unsigned long request, void* argument) {
    if (request != RDMA_VERBS_IOCTL || async_fd_of_ == nullptr) return refuse(ENOTTY);
    auto* header = static_cast<ib_uverbs_ioctl_hdr*>(argument);
    if (header->object_id != UVERBS_OBJECT_ASYNC_EVENT ||
        header->method_id != UVERBS_METHOD_ASYNC_EVENT_ALLOC)
        return refuse(ENOTTY);
    ib_uverbs_attr* attributes = header->attrs;
    for (unsigned i = 0; i < header->num_attrs; ++i) {
        if (attributes[i].attr_id != UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE) continue;
        const int fd = async_fd_of_(cookie_);
        if (fd < 0) return -1;
        attributes[i].data_s64 = fd;
        return 0;
    }
    return refuse(EINVAL);
}

std::optional<std::uint32_t> Channels::handle_of(int read_fd) {
    const std::lock_guard lock(mutex_);
    for (const Channel& channel : channels_)
        if (channel.read_fd == read_fd) return channel.handle;
    return std::nullopt;
}

int Channels::write_fd_of(int read_fd) {
    const std::lock_guard lock(mutex_);
    for (const Channel& channel : channels_)
        if (channel.read_fd == read_fd) return channel.write_end.get();
    return -1;
}

}  // namespace uib::provider

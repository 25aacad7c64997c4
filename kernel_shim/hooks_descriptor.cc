// The C library's entries that take a descriptor, and the provider's registration. For a descriptor that is
// none of ours a hook costs one relaxed load.
//
// An entry of the table is believed only after the descriptor itself was asked (recognise): what is ours is
// seldom read or written by the program, and so a stale entry can never take another file's data.
#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstdarg>

#include "kernel_shim/device.h"
#include "kernel_shim/fd_table.h"
#include "kernel_shim/real.h"
#include "kernel_shim/shim.h"

using namespace uib::shim;

namespace {

bool is_device(int fd) {
    return find_fd(fd) != 0 && recognise(fd) >= 0;
}

[[gnu::noinline]] ssize_t write_device(int fd, const void* buffer, size_t length) {
    const int saved = errno;
    const Callbacks callbacks = callbacks_of(fd);
    if (callbacks.on_write == nullptr) {
        errno = EINVAL;
        return -1;
    }
    if (callbacks.on_write(callbacks.cookie, buffer, length) < 0) return -1;
    errno = saved;
    return static_cast<ssize_t>(length);
}

/// The requests that the kernel answers for every descriptor before the driver sees them.
bool is_of_every_descriptor(unsigned long request) {
    return request == FIOCLEX || request == FIONCLEX || request == FIONBIO || request == FIOASYNC;
}

[[gnu::noinline]] int ioctl_device(int fd, unsigned long request, void* argument) {
    if (is_of_every_descriptor(request)) return real.ioctl(fd, request, argument);
    const Callbacks callbacks = callbacks_of(fd);
    if (callbacks.on_ioctl == nullptr) {
        errno = ENOTTY;
        return -1;
    }
    return callbacks.on_ioctl(callbacks.cookie, request, argument);
}

/// The connection is the provider's to read; the kernel's device has nothing to read either.
ssize_t read_device() {
    errno = EINVAL;
    return -1;
}

/// After some of these were closed, or perhaps only marked to be: the table forgets those that are gone.
void heal(unsigned first, unsigned last) {
    for_each_fd(first, last, [](int fd) { recognise(fd); });
}

int with_copy(int from, int to) {
    if (to >= 0) copy_fd(from, to);
    return to;
}

int control(int fd, int command, void* argument) {
    const int result = real.fcntl(fd, command, argument);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? with_copy(fd, result) : result;
}

}  // namespace

extern "C" {

ssize_t hook_read(int fd, void* buffer, size_t length) UIB_HOOK(read);
ssize_t hook_read_chk(int fd, void* buffer, size_t length, size_t room) UIB_HOOK(__read_chk);
ssize_t hook_write(int fd, const void* buffer, size_t length) UIB_HOOK(write);
int hook_ioctl(int fd, unsigned long request, ...) UIB_HOOK(ioctl);
int hook_close(int fd) UIB_HOOK(close);
int hook_close_range(unsigned first, unsigned last, int flags) UIB_HOOK(close_range);
void hook_closefrom(int first) UIB_HOOK(closefrom);
int hook_dup(int fd) UIB_HOOK(dup);
int hook_dup2(int fd, int to) UIB_HOOK(dup2);
int hook_dup3(int fd, int to, int flags) UIB_HOOK(dup3);
int hook_fcntl(int fd, int command, ...) UIB_HOOK(fcntl);
int hook_fcntl64(int fd, int command, ...) UIB_HOOK_ALIAS(fcntl64, fcntl);
int hook_socket(int domain, int type, int protocol) UIB_HOOK(socket);

ssize_t hook_read(int fd, void* buffer, size_t length) {
    if (is_device(fd)) [[unlikely]]
        return read_device();
    return real.read(fd, buffer, length);
}

ssize_t hook_read_chk(int fd, void* buffer, size_t length, size_t room) {
    if (is_device(fd)) [[unlikely]]
        return read_device();
    return real.__read_chk(fd, buffer, length, room);
}

ssize_t hook_write(int fd, const void* buffer, size_t length) {
    if (is_device(fd)) [[unlikely]]
        return write_device(fd, buffer, length);
    return real.write(fd, buffer, length);
}

int hook_ioctl(int fd, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void* argument = va_arg(arguments, void*);
    va_end(arguments);
    if (is_device(fd)) [[unlikely]]
        return ioctl_device(fd, request, argument);
    return real.ioctl(fd, request, argument);
}

int hook_close(int fd) {
    // Before the descriptor is free: another thread may get its number at once.
    if (find_fd(fd) != 0) [[unlikely]]
        forget_fd(fd);
    return real.close(fd);
}

int hook_close_range(unsigned first, unsigned last, int flags) {
    const int result = real.close_range(first, last, flags);
    if (result == 0) heal(first, last);
    return result;
}

void hook_closefrom(int first) {
    real.closefrom(first);
    heal(first < 0 ? 0U : static_cast<unsigned>(first), ~0U);
}

int hook_dup(int fd) {
    return with_copy(fd, real.dup(fd));
}
int hook_dup2(int fd, int to) {
    return with_copy(fd, real.dup2(fd, to));
}
int hook_dup3(int fd, int to, int flags) {
    return with_copy(fd, real.dup3(fd, to, flags));
}

int hook_fcntl(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void* argument = va_arg(arguments, void*);
    va_end(arguments);
    return control(fd, command, argument);
}

int hook_socket(int domain, int type, int protocol) {
    // With it libibverbs would ask the kernel for its devices and never look at sysfs.
    if (domain == AF_NETLINK && protocol == NETLINK_RDMA) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    return real.socket(domain, type, protocol);
}

void uib_shim_register_context(int cmd_fd,
                               int (*on_write)(void* cookie, const void* buffer, std::size_t length),
                               int (*on_ioctl)(void* cookie, unsigned long request, void* argument),
                               void* cookie) __attribute__((visibility("default")));
void uib_shim_unregister_context(int cmd_fd) __attribute__((visibility("default")));

void uib_shim_register_context(int cmd_fd,
                               int (*on_write)(void* cookie, const void* buffer, std::size_t length),
                               int (*on_ioctl)(void* cookie, unsigned long request, void* argument),
                               void* cookie) {
    if (recognise(cmd_fd) >= 0) register_callbacks(cmd_fd, {on_write, on_ioctl, cookie});
}

void uib_shim_unregister_context(int cmd_fd) {
    if (find_fd(cmd_fd) != 0) unregister_callbacks(cmd_fd);
}

}  // extern "C"

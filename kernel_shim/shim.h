// What libuib-shim.so offers to the provider. Look the functions up with dlsym(RTLD_DEFAULT, ...): a program
// may run without the shim.
#pragma once

#include <cstddef>

extern "C" {

/// Gives writes and ioctls on `cmd_fd`, and on descriptors that are duplicated from it from now on, to the
/// provider. Without a registration a write fails with EINVAL and an ioctl with ENOTTY.
///
/// `on_write` takes the whole buffer and returns >= 0, whereupon the program's write() returns `length`, or
/// -1 with errno. `on_ioctl` returns what ioctl() is to return, -1 with errno included. Both run on the
/// program's thread, also at the same time on several. A second call for the same descriptor replaces the
/// first.
void uib_shim_register_context(int cmd_fd,
                               int (*on_write)(void* cookie, const void* buffer, std::size_t length),
                               int (*on_ioctl)(void* cookie, unsigned long request, void* argument),
                               void* cookie);

/// Ends a registration for all descriptors that share it; call it before `cmd_fd` is closed. A callback that
/// another thread is in is not waited for.
void uib_shim_unregister_context(int cmd_fd);
}

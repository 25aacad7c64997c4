// The stat family. A device of the engine is shown as the character device that the kernel would have in its
// place.
#include <fcntl.h>
#include <sys/sysmacros.h>

#include "kernel_shim/device.h"
#include "kernel_shim/real.h"
#include "kernel_shim/route.h"

using namespace uib::shim;

namespace {

void show_device(struct stat& status, unsigned device) {
    status.st_mode = S_IFCHR | 0666;
    status.st_rdev = device_id(device);
    status.st_size = 0;
    status.st_blocks = 0;
}

void show_device(struct statx& status, unsigned device) {
    const dev_t id = device_id(device);
    status.stx_mode = S_IFCHR | 0666;
    status.stx_rdev_major = major(id);
    status.stx_rdev_minor = minor(id);
    status.stx_size = 0;
    status.stx_blocks = 0;
}

unsigned mode_of(const struct stat& status) {
    return status.st_mode;
}
unsigned mode_of(const struct statx& status) {
    return status.stx_mode;
}

/// After a call that asked by path.
template <typename Call, typename Status>
int stat_path(const char* path, Status* status, Call call) {
    return route_path(path, call, [=](const Route& route) {
        const int result = call(route.path);
        if (result == 0) show_device(*status, route.device);
        return result;
    });
}

/// After a call that asked by descriptor: only a socket can be one of ours.
template <typename Status>
int stat_descriptor(int result, int fd, Status* status) {
    if (result != 0 || !S_ISSOCK(mode_of(*status))) [[likely]]
        return result;
    if (const int device = recognise(fd); device >= 0) show_device(*status, static_cast<unsigned>(device));
    return result;
}

/// Whether an "at" call means the descriptor itself.
bool is_descriptor(const char* path, int flags) {
    return (flags & AT_EMPTY_PATH) != 0 && (path == nullptr || path[0] == '\0');
}

}  // namespace

extern "C" {

int hook_stat(const char* path, struct stat* status) UIB_HOOK(stat);
int hook_stat64(const char* path, struct stat* status) UIB_HOOK_ALIAS(stat64, stat);
int hook_lstat(const char* path, struct stat* status) UIB_HOOK(lstat);
int hook_lstat64(const char* path, struct stat* status) UIB_HOOK_ALIAS(lstat64, lstat);
int hook_fstat(int fd, struct stat* status) UIB_HOOK(fstat);
int hook_fstat64(int fd, struct stat* status) UIB_HOOK_ALIAS(fstat64, fstat);
int hook_fstatat(int directory, const char* path, struct stat* status, int flags) UIB_HOOK(fstatat);
int hook_fstatat64(int directory, const char* path, struct stat* status, int flags)
    UIB_HOOK_ALIAS(fstatat64, fstatat);
int hook_statx(int directory, const char* path, int flags, unsigned mask, struct statx* status)
    UIB_HOOK(statx);
int hook_xstat(int version, const char* path, struct stat* status) UIB_HOOK(__xstat);
int hook_xstat64(int version, const char* path, struct stat* status) UIB_HOOK_ALIAS(__xstat64, __xstat);
int hook_lxstat(int version, const char* path, struct stat* status) UIB_HOOK(__lxstat);
int hook_lxstat64(int version, const char* path, struct stat* status) UIB_HOOK_ALIAS(__lxstat64, __lxstat);
int hook_fxstat(int version, int fd, struct stat* status) UIB_HOOK(__fxstat);
int hook_fxstat64(int version, int fd, struct stat* status) UIB_HOOK_ALIAS(__fxstat64, __fxstat);
int hook_fxstatat(int version, int directory, const char* path, struct stat* status, int flags)
    UIB_HOOK(__fxstatat);
int hook_fxstatat64(int version, int directory, const char* path, struct stat* status, int flags)
    UIB_HOOK_ALIAS(__fxstatat64, __fxstatat);

int hook_stat(const char* path, struct stat* status) {
    return stat_path(path, status, [=](const char* p) { return real.stat(p, status); });
}

int hook_lstat(const char* path, struct stat* status) {
    return stat_path(path, status, [=](const char* p) { return real.lstat(p, status); });
}

int hook_fstat(int fd, struct stat* status) {
    return stat_descriptor(real.fstat(fd, status), fd, status);
}

int hook_fstatat(int directory, const char* path, struct stat* status, int flags) {
    const auto call = [=](const char* p) { return real.fstatat(directory, p, status, flags); };
    if (is_descriptor(path, flags)) return stat_descriptor(call(path), directory, status);
    return stat_path(path, status, call);
}

int hook_statx(int directory, const char* path, int flags, unsigned mask, struct statx* status) {
    const auto call = [=](const char* p) { return real.statx(directory, p, flags, mask, status); };
    if (is_descriptor(path, flags)) return stat_descriptor(call(path), directory, status);
    return stat_path(path, status, call);
}

int hook_xstat(int version, const char* path, struct stat* status) {
    return stat_path(path, status, [=](const char* p) { return real.__xstat(version, p, status); });
}

int hook_lxstat(int version, const char* path, struct stat* status) {
    return stat_path(path, status, [=](const char* p) { return real.__lxstat(version, p, status); });
}

int hook_fxstat(int version, int fd, struct stat* status) {
    return stat_descriptor(real.__fxstat(version, fd, status), fd, status);
}

int hook_fxstatat(int version, int directory, const char* path, struct stat* status, int flags) {
    const auto call = [=](const char* p) { return real.__fxstatat(version, directory, p, status, flags); };
    if (is_descriptor(path, flags)) return stat_descriptor(call(path), directory, status);
    return stat_path(path, status, call);
}

}  // extern "C"

// The C library's entries that take a path and open, list or resolve it. See route.h for which paths are
// ours.
#include <fcntl.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include "kernel_shim/device.h"
#include "kernel_shim/real.h"
#include "kernel_shim/route.h"

using namespace uib::shim;

namespace {

bool takes_mode(int flags) {
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

/// For calls that have no meaning on a device.
template <typename Result, Result kFailure>
Result refuse_device(const Route&) {
    errno = ENODEV;
    return kFailure;
}

int open_route(const Route& route, int flags) {
    if ((flags & O_DIRECTORY) != 0) {
        errno = ENOTDIR;
        return -1;
    }
    return open_device(route.device, flags);
}

/// A device is there to be read and written by everybody.
int access_device(const Route&, int mode) {
    if ((mode & 1) == 0) return 0;
    errno = EACCES;
    return -1;
}

/// A program that finds neither a device of the engine's nor one of the kernel's is told why.
template <typename Result>
Result list_devices(const char* path, Result result, bool failed) {
    if (failed && errno == ENOENT && may_be_ours(path) &&
        std::strcmp(path, "/sys/class/infiniband_verbs") == 0 && !tree_exists()) {
        const KeepErrno keep;
        tell_that_no_engine_answers();
    }
    return result;
}

char* copy_path(const char* from, char* to) {
    if (to == nullptr) return strdup(from);
    return std::strcpy(to, from);
}

}  // namespace

extern "C" {

int hook_open(const char* path, int flags, ...) UIB_HOOK(open);
int hook_open64(const char* path, int flags, ...) UIB_HOOK_ALIAS(open64, open);
int hook_open_2(const char* path, int flags) UIB_HOOK(__open_2);
int hook_open64_2(const char* path, int flags) UIB_HOOK_ALIAS(__open64_2, __open_2);
int hook_openat(int directory, const char* path, int flags, ...) UIB_HOOK(openat);
int hook_openat64(int directory, const char* path, int flags, ...) UIB_HOOK_ALIAS(openat64, openat);
int hook_openat_2(int directory, const char* path, int flags) UIB_HOOK(__openat_2);
int hook_openat64_2(int directory, const char* path, int flags) UIB_HOOK_ALIAS(__openat64_2, __openat_2);
FILE* hook_fopen(const char* path, const char* mode) UIB_HOOK(fopen);
FILE* hook_fopen64(const char* path, const char* mode) UIB_HOOK_ALIAS(fopen64, fopen);
DIR* hook_opendir(const char* path) UIB_HOOK(opendir);
int hook_scandir(const char* path, dirent*** names, DirentFilter filter, DirentCompare compare)
    UIB_HOOK(scandir);
int hook_scandir64(const char* path, dirent*** names, DirentFilter filter, DirentCompare compare)
    UIB_HOOK_ALIAS(scandir64, scandir);
int hook_access(const char* path, int mode) UIB_HOOK(access);
int hook_faccessat(int directory, const char* path, int mode, int flags) UIB_HOOK(faccessat);
int hook_euidaccess(const char* path, int mode) UIB_HOOK(euidaccess);
int hook_eaccess(const char* path, int mode) UIB_HOOK_ALIAS(eaccess, euidaccess);
ssize_t hook_readlink(const char* path, char* buffer, size_t size) UIB_HOOK(readlink);
ssize_t hook_readlinkat(int directory, const char* path, char* buffer, size_t size) UIB_HOOK(readlinkat);
ssize_t hook_readlink_chk(const char* path, char* buffer, size_t size, size_t room) UIB_HOOK(__readlink_chk);
ssize_t hook_readlinkat_chk(int directory, const char* path, char* buffer, size_t size, size_t room)
    UIB_HOOK(__readlinkat_chk);
char* hook_realpath(const char* path, char* resolved) UIB_HOOK(realpath);
char* hook_realpath_chk(const char* path, char* resolved, size_t room) UIB_HOOK(__realpath_chk);
char* hook_canonicalize_file_name(const char* path) UIB_HOOK(canonicalize_file_name);

int hook_open(const char* path, int flags, ...) {
    mode_t mode = 0;
    if (takes_mode(flags)) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    return route_path(
        path, [=](const char* p) { return real.open(p, flags, mode); },
        [=](const Route& route) { return open_route(route, flags); });
}

int hook_open_2(const char* path, int flags) {
    return route_path(
        path, [=](const char* p) { return real.__open_2(p, flags); },
        [=](const Route& route) { return open_route(route, flags); });
}

int hook_openat(int directory, const char* path, int flags, ...) {
    mode_t mode = 0;
    if (takes_mode(flags)) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    return route_path(
        path, [=](const char* p) { return real.openat(directory, p, flags, mode); },
        [=](const Route& route) { return open_route(route, flags); });
}

int hook_openat_2(int directory, const char* path, int flags) {
    return route_path(
        path, [=](const char* p) { return real.__openat_2(directory, p, flags); },
        [=](const Route& route) { return open_route(route, flags); });
}

FILE* hook_fopen(const char* path, const char* mode) {
    return route_path(
        path, [=](const char* p) { return real.fopen(p, mode); }, refuse_device<FILE*, nullptr>);
}

DIR* hook_opendir(const char* path) {
    DIR* result = route_path(
        path, [](const char* p) { return real.opendir(p); }, refuse_device<DIR*, nullptr>);
    return list_devices(path, result, result == nullptr);
}

int hook_scandir(const char* path, dirent*** names, DirentFilter filter, DirentCompare compare) {
    const int result = route_path(
        path, [=](const char* p) { return real.scandir(p, names, filter, compare); }, refuse_device<int, -1>);
    return list_devices(path, result, result < 0);
}

int hook_access(const char* path, int mode) {
    return route_path(
        path, [=](const char* p) { return real.access(p, mode); },
        [=](const Route& route) { return access_device(route, mode); });
}

int hook_faccessat(int directory, const char* path, int mode, int flags) {
    return route_path(
        path, [=](const char* p) { return real.faccessat(directory, p, mode, flags); },
        [=](const Route& route) { return access_device(route, mode); });
}

int hook_euidaccess(const char* path, int mode) {
    return route_path(
        path, [=](const char* p) { return real.euidaccess(p, mode); },
        [=](const Route& route) { return access_device(route, mode); });
}

ssize_t hook_readlink(const char* path, char* buffer, size_t size) {
    const auto call = [=](const char* p) { return real.readlink(p, buffer, size); };
    return route_path(path, call, [=](const Route& route) { return call(route.path); });
}

ssize_t hook_readlinkat(int directory, const char* path, char* buffer, size_t size) {
    const auto call = [=](const char* p) { return real.readlinkat(directory, p, buffer, size); };
    return route_path(path, call, [=](const Route& route) { return call(route.path); });
}

ssize_t hook_readlink_chk(const char* path, char* buffer, size_t size, size_t room) {
    const auto call = [=](const char* p) { return real.__readlink_chk(p, buffer, size, room); };
    return route_path(path, call, [=](const Route& route) { return call(route.path); });
}

ssize_t hook_readlinkat_chk(int directory, const char* path, char* buffer, size_t size, size_t room) {
    const auto call = [=](const char* p) { return real.__readlinkat_chk(directory, p, buffer, size, room); };
    return route_path(path, call, [=](const Route& route) { return call(route.path); });
}

// A device's path is its own real path, not that of the file that stands for it.
char* hook_realpath(const char* path, char* resolved) {
    return route_path(
        path, [=](const char* p) { return real.realpath(p, resolved); },
        [=](const Route& route) { return copy_path(route.path + route.tree_length, resolved); });
}

char* hook_realpath_chk(const char* path, char* resolved, size_t room) {
    return route_path(
        path, [=](const char* p) { return real.__realpath_chk(p, resolved, room); },
        [=](const Route& route) { return copy_path(route.path + route.tree_length, resolved); });
}

char* hook_canonicalize_file_name(const char* path) {
    return hook_realpath(path, nullptr);
}

}  // extern "C"

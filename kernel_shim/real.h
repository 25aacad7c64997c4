// The C library's own functions behind those that the shim interposes.
//
// Each is looked up at its first use and all of them by the library's constructor, so that a hook works in a
// program's or another library's constructor and a later call from a signal handler never gets into the
// dynamic linker.
//
// stat64, open64 and so on are on 64-bit machines the same functions as those without the 64: there is one
// entry for both.
#pragma once

#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>

namespace uib::shim {

static_assert(sizeof(long) == 8 && sizeof(off_t) == 8, "the functions with and without 64 must be the same");

using DirentFilter = int (*)(const dirent*);
using DirentCompare = int (*)(const dirent**, const dirent**);

// clang-format off
#define UIB_REAL_FUNCTIONS(X)                                                         \
    X(open, int(const char*, int, ...))                                               \
    X(__open_2, int(const char*, int))                                                \
    X(openat, int(int, const char*, int, ...))                                        \
    X(__openat_2, int(int, const char*, int))                                         \
    X(fopen, FILE*(const char*, const char*))                                         \
    X(opendir, DIR*(const char*))                                                     \
    X(scandir, int(const char*, dirent***, DirentFilter, DirentCompare))              \
    X(access, int(const char*, int))                                                  \
    X(faccessat, int(int, const char*, int, int))                                     \
    X(euidaccess, int(const char*, int))                                              \
    X(readlink, ssize_t(const char*, char*, size_t))                                  \
    X(readlinkat, ssize_t(int, const char*, char*, size_t))                           \
    X(__readlink_chk, ssize_t(const char*, char*, size_t, size_t))                    \
    X(__readlinkat_chk, ssize_t(int, const char*, char*, size_t, size_t))             \
    X(realpath, char*(const char*, char*))                                            \
    X(__realpath_chk, char*(const char*, char*, size_t))                              \
    X(stat, int(const char*, struct stat*))                                           \
    X(lstat, int(const char*, struct stat*))                                          \
    X(fstat, int(int, struct stat*))                                                  \
    X(fstatat, int(int, const char*, struct stat*, int))                              \
    X(statx, int(int, const char*, int, unsigned, struct statx*))                     \
    X(__xstat, int(int, const char*, struct stat*))                                   \
    X(__lxstat, int(int, const char*, struct stat*))                                  \
    X(__fxstat, int(int, int, struct stat*))                                          \
    X(__fxstatat, int(int, int, const char*, struct stat*, int))                      \
    X(read, ssize_t(int, void*, size_t))                                              \
    X(__read_chk, ssize_t(int, void*, size_t, size_t))                                \
    X(write, ssize_t(int, const void*, size_t))                                       \
    X(ioctl, int(int, unsigned long, ...))                                            \
    X(close, int(int))                                                                \
    X(close_range, int(unsigned, unsigned, int))                                      \
    X(closefrom, void(int))                                                           \
    X(dup, int(int))                                                                  \
    X(dup2, int(int, int))                                                            \
    X(dup3, int(int, int, int))                                                       \
    X(fcntl, int(int, int, ...))                                                      \
    X(socket, int(int, int, int))
// clang-format on

/// One function of the C library, looked up once. Two threads that look it up at the same time find the same.
template <typename Function>
class Real {
  public:
    explicit constexpr Real(const char* name) : name_(name) {}

    Function* get() {
        Function* function = function_.load(std::memory_order_relaxed);
        if (function == nullptr) [[unlikely]] {
            function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
            function_.store(function, std::memory_order_relaxed);
        }
        return function;
    }

    template <typename... Arguments>
    auto operator()(Arguments... arguments) {
        return get()(arguments...);
    }

  private:
    const char* const name_;
    std::atomic<Function*> function_{nullptr};
};

struct RealFunctions {
#define UIB_REAL_MEMBER(name, ...) Real<__VA_ARGS__> name{#name};
    UIB_REAL_FUNCTIONS(UIB_REAL_MEMBER)
#undef UIB_REAL_MEMBER
};

extern constinit RealFunctions real;

/// What a hook does beside the call itself must not show in errno.
class KeepErrno {
  public:
    KeepErrno() : saved_(errno) {}
    ~KeepErrno() { errno = saved_; }
    KeepErrno(const KeepErrno&) = delete;
    KeepErrno& operator=(const KeepErrno&) = delete;

  private:
    const int saved_;
};

}  // namespace uib::shim

// A hook is a function of ours under the C library's symbol. The headers' own declarations (exception
// specifications, fortified inlines) stay out of its way, since to the compiler it has another name.
#define UIB_HOOK(symbol) __asm__(#symbol) __attribute__((visibility("default")))
// A second symbol for the hook of the same file that goes by `target`.
#define UIB_HOOK_ALIAS(symbol, target) __asm__(#symbol) __attribute__((visibility("default"), alias(#target)))

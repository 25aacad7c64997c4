#include "net/port/dpdk/xdp_messages.h"

#include <dlfcn.h>

#include <array>
#include <cstdarg>
#include <cstdio>

namespace uib::net::dpdk {

namespace {

// Both libraries' own types: a level, 0 being a warning, a format and its arguments.
using Print = int (*)(int level, const char* format, std::va_list arguments);
using SetPrint = Print (*)(Print print);

constexpr int kWarning = 0;
thread_local std::string* messages = nullptr;

int keep(int level, const char* format, std::va_list arguments) {
    if (messages == nullptr || level > kWarning) return 0;
    std::array<char, 512> line{};
    const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
    *messages += line.data();
    return length;
}

// The libraries are not linked: they are there if the driver is.
void print_with_keep(const char* library, const char* setter) {
    void* const handle = ::dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (handle == nullptr) return;
    if (void* const set = ::dlsym(handle, setter); set != nullptr) reinterpret_cast<SetPrint>(set)(keep);
    ::dlclose(handle);
}

}  // namespace

XdpMessages::XdpMessages() {
    print_with_keep("libxdp.so.1", "libxdp_set_print");
    print_with_keep("libbpf.so.1", "libbpf_set_print");
    messages = &text_;
}

XdpMessages::~XdpMessages() {
    messages = nullptr;
}

}  // namespace uib::net::dpdk

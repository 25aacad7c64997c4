#include "net/port/port_module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "net/port/packet_port.h"

namespace uib::net {

namespace {

constexpr const char* kModule = "libuib-dpdk.so";

std::vector<std::filesystem::path> places() {
    if (const char* given = ::getenv("UIB_DPDK_MODULE"); given != nullptr && *given != '\0') return {given};
    std::error_code error;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
    const std::filesystem::path directory = program.parent_path();
    return {directory / kModule, directory / ".." / "lib" / kModule,
            directory / ".." / "lib" / "uib" / kModule, UIB_LIBRARY_DIRECTORY "/uib/libuib-dpdk.so"};
}

void* load() {
    std::string tried;
    for (const std::filesystem::path& place : places()) {
        if (void* module = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL); module != nullptr) return module;
        tried += std::string("\n  ") + ::dlerror();
    }
    throw std::runtime_error("ports outside this machine need uib's DPDK module:" + tried);
}

}  // namespace

std::unique_ptr<FramePort> open_frame_port(const FramePortOptions& options) {
    if (options.driver == "af_packet" && options.extra.empty()) return std::make_unique<PacketPort>(options);
    static void* const module = load();
    const auto open = reinterpret_cast<OpenFramePort>(::dlsym(module, kOpenSymbol));
    if (open == nullptr) throw std::runtime_error(std::string("uib's DPDK module has no ") + kOpenSymbol);
    std::string error;
    std::unique_ptr<FramePort> port(open(options, error));
    if (port == nullptr) throw std::runtime_error(error);
    return port;
}

}  // namespace uib::net

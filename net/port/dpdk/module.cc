// The module's one entry (net/port/port_module.h).
#include <exception>

#include "net/port/dpdk/dpdk_port.h"
#include "net/port/port_module.h"

extern "C" __attribute__((visibility("default"))) uib::net::FramePort* uib_open_frame_port(
    const uib::net::FramePortOptions& options, std::string& error) {
    try {
        return new uib::net::dpdk::DpdkPort(options);
    } catch (const std::exception& failure) {
        error = failure.what();
        return nullptr;
    }
}

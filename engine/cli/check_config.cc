#include "engine/cli/check_config.h"

#include <net/if.h>

#include <cstdio>

#include "engine/daemon/config.h"

namespace uib::cli {
namespace {

std::string describe(const verbs::DeviceConfig& device) {
    std::string text =
        device.name + (device.link_layer == verbs::LinkLayer::kEthernet ? ": ethernet" : ": infiniband");
    if (!device.port) return text + ", inside the engine";
    return text + ", roce on " + device.port->frames.interface + " by " + device.port->frames.driver;
}

/// Warns of an interface that is one of the host's, must be there already, and is not.
void check_interface(const std::string& file, const std::string& what, const net::FramePortOptions& frames) {
    const bool on_host = frames.driver == "af_packet" || frames.driver == "af_xdp";
    if (on_host && ::if_nametoindex(frames.interface.c_str()) == 0)
        std::fprintf(stderr, "%s: warning: %s: there is no interface '%s' here\n", file.c_str(), what.c_str(),
                     frames.interface.c_str());
}

/// Warns of what a driver does that its line does not tell.
void check_driver(const std::string& file, const net::FramePortOptions& frames) {
    if (frames.driver == "memif")
        std::fprintf(stderr,
                     "%s: warning: %s: DPDK's driver memif may crash an engine whose peer ends; vhost and "
                     "virtio_user do the same without that\n",
                     file.c_str(), frames.name.c_str());
    if (frames.driver == "vhost" && !frames.server)
        std::fprintf(stderr,
                     "%s: warning: %s: driver vhost without server = true waits for a server (a virtual "
                     "machine's monitor); virtio_user is none\n",
                     file.c_str(), frames.name.c_str());
}

}  // namespace

int CheckConfigCommand::run() const {
    try {
        const daemon::Config config = daemon::load_config(file_);
        for (const verbs::DeviceConfig& device : config.devices) {
            std::printf("%s\n", describe(device).c_str());
            if (device.port) check_interface(file_, "device " + device.name, device.port->frames);
        }
        for (const verbs::LinkConfig& link : config.links) {
            std::printf("%s: ib on %s by %s, %u links at most\n", link.frames.name.c_str(),
                        link.frames.interface.c_str(), link.frames.driver.c_str(), link.slots);
            check_interface(file_, link.frames.name, link.frames);
            check_driver(file_, link.frames);
        }
        return 0;
    } catch (const daemon::ConfigError& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}

}  // namespace uib::cli

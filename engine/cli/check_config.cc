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
    return text + ", " + (device.port->link == verbs::Link::kRoce ? "roce" : "ib") + " on " +
           device.port->frames.interface + " by " + device.port->frames.driver;
}

/// Drivers whose interface is one of the host's that must be there already.
bool needs_host_interface(const std::string& driver) {
    return driver == "af_packet" || driver == "af_xdp";
}

}  // namespace

CheckConfigCommand::CheckConfigCommand(CLI::App& app)
    : app_(app.add_subcommand("check-config", "Check a configuration as uibd reads it; show its devices")) {
    app_->add_option("FILE", file_, "Configuration (TOML)")->required();
}

int CheckConfigCommand::run() const {
    try {
        const daemon::Config config = daemon::load_config(file_);
        for (const verbs::DeviceConfig& device : config.devices) {
            std::printf("%s\n", describe(device).c_str());
            if (!device.port || !needs_host_interface(device.port->frames.driver)) continue;
            const std::string& interface = device.port->frames.interface;
            if (::if_nametoindex(interface.c_str()) == 0)
                std::fprintf(stderr, "%s: warning: device %s: there is no interface '%s' here\n",
                             file_.c_str(), device.name.c_str(), interface.c_str());
        }
        return 0;
    } catch (const daemon::ConfigError& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}

}  // namespace uib::cli

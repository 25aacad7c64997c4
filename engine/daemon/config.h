// clang-format off
// What `uibd --config FILE` says, as values. The file is TOML:
//
//     [engine]
//     socket = "/run/uib/engine.sock"   # default: ipc::socket_path()
//     log_level = "info"                # trace, debug, info, warning, error, off
//     devices = 2                       # uib0, uib1, ...
//     number = 1                        # among engines that share a subnet, each its own: part of the GUIDs
//     link_layer = "infiniband"         # or "ethernet": of the devices that do not say it themselves
//
//     [[device]]                        # instead of engine.devices: one table a device
//     name = "rack1"
//     link_layer = "ethernet"           # RoCE and raw packets
//     port = { link = "roce", driver = "af_packet", interface = "eth0" }   # without: inside the engine
//
//     [[subnet]]                        # of the InfiniBand devices; default: one subnet without a name
//     name = "a"                        # devices join by subnet = "a"; the others are in the first
//     prefix = "fec0:0:0:1::"           # of its GIDs; default: fe80::. A router joins several subnets
//     lmc = 1                           # each port gets 2^lmc LIDs, 0 to 7
//     priority = 3                      # of the built-in subnet manager, 0 to 15
//     manager = false                   # it does not run: another one has to bring the ports up
//
//     [[link]]                          # InfiniBand links to other engines over an Ethernet port
//     driver = "af_packet"
//     interface = "eth0"
//     peers = ["02:00:00:00:00:07"]     # default: every engine that is found there; slots = 4: at most so many
//
// More keys of a port: mtu (of the frames; default: the interface's), vlan (tag of RoCE frames), extra
// (arguments for the DPDK driver, "key=value,..."), server (memif, vhost: this end makes the socket). Links take the
// same but for vlan, and ether_type (0x88B5).
//
// clang-format on
//
// Unknown keys, wrong types and impossible values are refused with line and column.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "engine/verbs/device.h"

namespace uib::daemon {

struct Config {
    std::string socket;
    std::string log_level = "info";
    std::vector<verbs::DeviceConfig> devices = {"uib0", "uib1"};
    std::vector<verbs::SubnetConfig> subnets = std::vector<verbs::SubnetConfig>(1);
    std::vector<verbs::LinkConfig> links;
    bool numbered = false;  ///< engine.number is given
};

/// The message names file, line, column and what was expected.
class ConfigError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

inline constexpr unsigned kMaxDevices = 64;

/// Throws ConfigError.
Config load_config(const std::string& path);
/// `name` is what messages call the text.
Config parse_config(std::string_view text, const std::string& name);

}  // namespace uib::daemon

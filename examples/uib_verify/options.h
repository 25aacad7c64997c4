// What uib_verify was asked to do.
#pragma once

#include <cstdint>
#include <string>

#include "examples/kit/memory.h"

namespace uib::verify {

struct Options {
    std::string device;       ///< initiator's; empty: the first
    std::string peer_device;  ///< target's; empty: the same as the initiator's
    std::uint64_t seed = 1;
    std::uint32_t rounds = 100;     ///< batches of cases
    std::uint32_t in_flight = 8;    ///< cases a batch, at once
    std::uint32_t queue_pairs = 8;  ///< of each service
    std::uint64_t max_bytes = 1 << 20;
    int path_mtu = 0;  ///< bytes; 0: the port's
    kit::MemoryKind memory = kit::MemoryKind::kPrivate;
    bool events = false;   ///< sleep on completion events instead of polling
    bool threads = false;  ///< two threads of one process instead of two processes
    bool large = false;    ///< also messages up to 2^31 bytes, one at a time (needs 4.1 GiB)
    std::string listen;    ///< TCP port: this process is the target, the initiator connects to it
    std::string connect;   ///< HOST:PORT: this process is the initiator of a target elsewhere
    std::string only;      ///< operations whose name contains this
    bool verbose = false;
};

/// Reads the command line; prints the usage and exits where it is wrong or asked for.
Options parse_options(int argc, char** argv);

}  // namespace uib::verify

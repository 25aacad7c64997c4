#include "engine/daemon/privilege.h"

#include <linux/capability.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace uib::daemon {
namespace {

bool has_capability(const std::string& process, unsigned capability) {
    std::ifstream status(process + "/status");
    std::string name;
    while (status >> name) {
        if (name == "CapEff:") {
            std::uint64_t set = 0;
            return status >> std::hex >> set && (set >> capability & 1) != 0;
        }
        std::getline(status, name);
    }
    return false;
}

bool in_our_user_namespace(const std::string& process) {
    std::error_code unreadable;
    const auto theirs = std::filesystem::read_symlink(process + "/ns/user", unreadable);
    if (unreadable) return false;
    const auto ours = std::filesystem::read_symlink("/proc/self/ns/user", unreadable);
    return !unreadable && theirs == ours;
}

}  // namespace

bool may_use_raw_packets(const ucred& peer) {
    if (peer.pid <= 0) return false;
    if (peer.uid == 0) return true;
    const std::string process = "/proc/" + std::to_string(peer.pid);
    return has_capability(process, CAP_NET_RAW) && in_our_user_namespace(process);
}

bool may_use_taps(const ucred& peer) {
    return peer.pid > 0 && (peer.uid == 0 || peer.uid == ::geteuid());
}

}  // namespace uib::daemon

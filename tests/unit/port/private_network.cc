#include "tests/unit/port/private_network.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace uib::testing {

bool shell(const std::string& command) {
    return std::system(command.c_str()) == 0;
}

std::string enter_private_network(unsigned mtu) {
    const uid_t uid = ::geteuid();
    const gid_t gid = ::getegid();
    if (::unshare(uid == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return std::string("no network namespace of our own: ") + std::strerror(errno);
    if (uid != 0) {
        std::ofstream("/proc/self/setgroups") << "deny";
        std::ofstream("/proc/self/uid_map") << "0 " << uid << " 1";
        std::ofstream("/proc/self/gid_map") << "0 " << gid << " 1";
    }
    const std::string size = std::to_string(mtu);
    if (!shell("ip link add va mtu " + size + " type veth peer name vb mtu " + size +
               " && ip link set lo up && ip link set va up && ip link set vb up"))
        return "ip link cannot make a veth pair here";
    return {};
}

}  // namespace uib::testing

#include "net/port/host_interface.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "engine/ipc/unique_fd.h"

namespace uib::net {

namespace {

/// One ioctl on the interface; false when there is no such interface any more.
bool ask(const std::string& name, unsigned long request, ifreq& answer) {
    const ipc::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    std::memset(&answer, 0, sizeof answer);
    name.copy(answer.ifr_name, IFNAMSIZ - 1);
    return socket && ::ioctl(socket.get(), request, &answer) == 0;
}

}  // namespace

HostInterface::HostInterface(std::string name)
    : name_(std::move(name)), index_(static_cast<int>(::if_nametoindex(name_.c_str()))) {
    if (name_.empty() || name_.size() >= IFNAMSIZ || index_ == 0)
        throw std::runtime_error("there is no interface '" + name_ +
                                 "' in this network namespace (ip link shows them)");
}

int HostInterface::current_index() const {
    return static_cast<int>(::if_nametoindex(name_.c_str()));
}

bool HostInterface::enabled() const {
    ifreq answer;
    return ask(name_, SIOCGIFFLAGS, answer) && (answer.ifr_flags & IFF_UP) != 0;
}

bool HostInterface::up() const {
    ifreq answer;
    return ask(name_, SIOCGIFFLAGS, answer) && (answer.ifr_flags & IFF_UP) != 0 &&
           (answer.ifr_flags & IFF_RUNNING) != 0;
}

std::uint32_t HostInterface::mtu() const {
    ifreq answer;
    return ask(name_, SIOCGIFMTU, answer) ? static_cast<std::uint32_t>(answer.ifr_mtu) : 0;
}

MacAddress HostInterface::mac() const {
    ifreq answer;
    MacAddress mac{};
    if (ask(name_, SIOCGIFHWADDR, answer)) std::memcpy(mac.data(), answer.ifr_hwaddr.sa_data, mac.size());
    return mac;
}

}  // namespace uib::net

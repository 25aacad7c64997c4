// The host's view of one interface, from the kernel by netlink: its addresses (which become GIDs), and the
// way to another address (route, then neighbour). Changes arrive by notification.
//
// One thread owns it. Queries are short exchanges with the kernel; answers about neighbours are kept until
// the kernel says that the neighbour or a route changed, or until forget(). When a neighbour is not known yet
// the kernel is made to ask for it (by an empty datagram to the discard port), and the caller tries again
// later. A notification socket that overflowed makes everything be read afresh.
#pragma once

#include <libmnl/libmnl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/netlink/answers.h"
#include "net/wire/gid.h"
#include "net/wire/mac_address.h"

namespace uib::net {

class HostNetwork {
  public:
    /// Throws std::runtime_error (no such interface, no netlink).
    explicit HostNetwork(const std::string& interface);

    /// Usable addresses, in the kernel's order: IPv6 link-local first, then IPv4, then other IPv6. Tentative
    /// and failed ones are left out.
    [[nodiscard]] const std::vector<HostAddress>& addresses() const { return addresses_; }

    /// Of the interface; 0 while there is none.
    [[nodiscard]] int index() const { return index_; }
    /// Readable when the kernel has news.
    [[nodiscard]] int descriptor() const;
    /// Takes the news in. True when addresses() has changed. An interface that has gone has no addresses; one
    /// that comes back by the same name is taken up again.
    bool poll();
    /// What was learnt about ways is asked for again when it is next wanted. To be called now and then: the
    /// kernel does not watch over neighbours to whom it sends nothing itself.
    void forget() { known_.clear(); }

    enum class Resolution { kReady, kPending, kUnreachable };
    /// The MAC to which packets for `to` go: of the neighbour, or of the gateway before it; multicast
    /// addresses map by rule. kPending: asked for, try again. kUnreachable: no route through this interface.
    Resolution resolve(const Gid& to, MacAddress& mac);

  private:
    struct Closer {
        void operator()(mnl_socket* socket) const { mnl_socket_close(socket); }
    };
    using Socket = std::unique_ptr<mnl_socket, Closer>;
    struct Route {
        bool through_here = false;
        Gid next_hop{};
    };

    static Socket open_socket(unsigned groups);
    /// Sends a request and hands every answer to `callback`; false on an error answer.
    bool exchange(nlmsghdr* request, mnl_cb_t callback, void* data);
    void read_addresses();
    /// True if the interface's index is another than before (0: there is none).
    bool follow_interface();
    [[nodiscard]] Route find_route(const Gid& to);
    bool find_neighbour(const Gid& address, MacAddress& mac);
    static void solicit(const Gid& address, int index);

    std::string interface_;
    int index_ = 0;
    Socket queries_;
    Socket news_;
    std::uint32_t sequence_ = 0;
    std::vector<HostAddress> addresses_;
    std::map<Gid, MacAddress> known_;  ///< destinations resolved since the last relevant news
};

}  // namespace uib::net

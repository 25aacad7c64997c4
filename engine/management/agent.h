// The subnet management agent: answers Get and Set of a node's attributes (IBA 14.2.3, 14.2.5).
//
// It works on the node's values directly; a Set that is refused in part (status 0x001C) has set the rest, and
// the answer shows what the attribute holds afterwards. It knows nothing of routes: smi.h and smp_node.h
// bring requests here and answers back.
#pragma once

#include <optional>

#include "engine/management/node.h"

namespace uib::management {

/// The answer to `request`, which came in through `port` (0: from the switch itself); nothing if it is to be
/// discarded: M_Key, or a method that gets no answer.
std::optional<net::Smp> answer(Node& node, unsigned port, const net::Smp& request, Time now);

/// Handlers by attribute: they fill or read `data` and return the status. `set`: the values are taken over
/// first. `port` is where the request came in.
struct Request {
    bool set = false;
    std::uint32_t modifier = 0;
    unsigned port = 0;
};
std::uint16_t port_info(Node& node, const Request& request, Data data);
std::uint16_t guid_info(Node& node, const Request& request, Data data);
std::uint16_t pkey_table(Node& node, const Request& request, Data data);
std::uint16_t sl_to_vl_table(Node& node, const Request& request, Data data);
std::uint16_t vl_arbitration_table(Node& node, const Request& request, Data data);
std::uint16_t switch_info(Node& node, const Request& request, Data data);
std::uint16_t linear_table(Node& node, const Request& request, Data data);
std::uint16_t multicast_table(Node& node, const Request& request, Data data);

}  // namespace uib::management

// A duplicate atomic or atomic write (IBA 9.7.5.1.4, o9-66 to o9-68): the saved result of the operation with
// its PSN and opcode goes out again; nothing is executed, no key is looked at. One that is not among the
// newest max_dest_rd_atomic requests any more is dropped.
#include "engine/transport/rc_responder.h"

namespace uib::transport {

void RcResponder::repeat_atomic(const net::Packet& packet) {
    std::uint32_t index = 0;
    const bool found = find_saved(
        [&](const Saved& entry) {
            return entry.psn == packet.bth.psn && entry.operation == packet.bth.operation();
        },
        index);
    if (found) {
        serve_again(index);
    } else {
        ++machine_.count().dropped_duplicates;
    }
}

}  // namespace uib::transport

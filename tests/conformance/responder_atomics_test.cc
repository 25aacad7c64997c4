// Atomics of several queue pairs of one adapter (IBA 9.4.5.1).
#include <set>

#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

// Two responders on the same bytes, their requests in any order: nothing is lost and no value is seen twice.
TEST_P(Responder, o9_17_atomics_of_several_queue_pairs_do_not_mix) {
    ROWS("o9-17");
    Peer other(GetParam(), kMachineQp + 2);
    memory::RegionInit init = other.machine().region->init();
    init.space = peer.machine().space;
    const std::uint32_t other_key = other.machine().keys().add_region(std::move(init))->key();
    connect();
    other.connect();
    std::set<std::uint64_t> seen;
    int psn = 0;
    int other_psn = 0;
    for (int i = 0; i < 60; ++i) {
        const bool first = i % 3 != 0;
        Peer& one = first ? peer : other;
        int& own = first ? psn : other_psn;
        one.sends(fetch_add(own++, first ? peer.rkey() : other_key, Station::kBase, 1));
        seen.insert(one.hears().packet.atomic_original);
    }
    EXPECT_EQ(seen.size(), 60U);
    EXPECT_EQ(*seen.rbegin(), 59U);
    EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(peer.machine().at(0)), 60U);
}

}  // namespace
}  // namespace uib::conformance

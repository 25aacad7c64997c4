// Random work for one direction of a connection and an independent account of what must come of it.
//
// The model knows only the rules a client may rely on: SENDs and immediates arrive once, in order, whole;
// WRITEs put their bytes where they say, READs bring what was there, atomics happen once each; every request
// completes once, in order; nothing else in either memory changes.
#pragma once

#include <string>
#include <vector>

#include "tests/simulation/world.h"

namespace uib::simulation {

class Direction {
  public:
    /// Client side of `from`, towards `to`. `base` is this direction's share of both memories.
    Direction(World& world, Station& from, Station& to, std::uint64_t base, bool reliable);

    /// Posts `count` requests and the receives they need; with `late` the receives come with trickle().
    void post(unsigned count, bool late);
    /// Posts the next late receive.
    void trickle();
    /// Empty if all is as it must be, else what is not.
    std::string check();

    static constexpr std::uint64_t kShare = 500'000;
    static constexpr std::uint32_t kSharedBytes = 2048;

  private:
    struct Expected {
        transport::testing::Work work;
        std::uint32_t length = 0;
        unsigned seed = 0;
        std::uint64_t source = 0;
        std::uint64_t target = 0;  ///< where the bytes end up
        bool takes_receive = false;
        bool arrived = false;    ///< unreliable: a completion has been matched with it
        bool in_shared = false;  ///< a WRITE into the shared area
        std::uint64_t atomic_before = 0;
    };
    void post_one();
    void post_receive(const Expected& item);
    void plan_message(Expected& item);
    void plan_read(Expected& item);
    void plan_atomic(Expected& item);
    std::uint64_t take(std::uint64_t& next, std::uint32_t length);
    std::string check_receives();
    bool is_some_message(const transport::Completion& completion, std::uint64_t at);
    std::string check_reliable_memory(const Expected& item);

    World& world_;
    Station& from_;
    Station& to_;
    std::uint64_t base_;
    bool reliable_;
    std::uint64_t next_local_;
    std::uint64_t next_remote_;
    std::uint64_t word_ = 0;
    std::vector<Expected> items_;
    std::vector<std::size_t> receives_;  ///< items that take a receive, in order
    std::deque<transport::testing::ListReceiveQueue::Entry> late_;
    bool posts_late_ = false;
    /// What the area that many WRITEs share must hold in the end.
    std::vector<std::byte> shared_ = std::vector<std::byte>(kSharedBytes);
};

}  // namespace uib::simulation

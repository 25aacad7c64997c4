#include "tests/unit/link/joined_ports.h"

#include <algorithm>

#include "net/wire/bytes.h"
#include "net/wire/headers.h"
#include "tests/unit/link/link_packets.h"

namespace uib::net::link {

JoinedPorts::JoinedPorts(const LinkConfig& config, const PortSettings& settings, const Wire& wire,
                         std::uint64_t seed)
    : wire_(wire),
      random_(seed),
      ports_{LinkPort(config), LinkPort(config)},
      out_(ports_[0].max_frame_bytes()) {
    PortSettings own = settings;
    own.lid = kOwnLid;
    ports_[0].configure(own, now_);
    own.lid = kPeerLid;
    ports_[1].configure(own, now_);
    SlToVl each_its_own{};
    for (unsigned sl = 0; sl < each_its_own.size(); ++sl) each_its_own[sl] = static_cast<std::uint8_t>(sl);
    for (LinkPort& port : ports_) port.set_sl_to_vl(0, each_its_own);
}

void JoinedPorts::bring_up() {
    constexpr Time kSettles = 10'000'000;
    for (LinkPort& port : ports_) port.set_physical_link(true, now_);
    for (const PortState state : {PortState::kArm, PortState::kActive}) {
        run_for(kSettles);
        for (LinkPort& port : ports_) port.command(static_cast<std::uint8_t>(state), now_);
    }
    run_for(kSettles);
}

void JoinedPorts::run_until(Time end) {
    while (now_ < end) {
        const Time next = step();
        now_ = std::clamp(next, now_ + 1, end);
    }
    step();
}

Time JoinedPorts::step() {
    for (int end : {0, 1}) deliver(end);
    Time next = kNoDeadline;
    for (const Actor& actor : actors_) next = std::min(next, actor(now_));
    for (int end : {0, 1}) {
        transmit(end);
        next = std::min(next, ports_[end].next_deadline());
        if (directions_[end].free_at > now_) next = std::min(next, directions_[end].free_at);
        if (!directions_[end].flights.empty())
            next = std::min(next, directions_[end].flights.front().arrives);
    }
    return next;
}

void JoinedPorts::transmit(int from) {
    Direction& direction = directions_[from];
    while (direction.free_at <= now_) {
        const Frame frame = ports_[from].next_frame(now_, out_);
        if (frame.bytes.empty()) return;
        ++frames;
        direction.free_at = now_ + frame.bytes.size() * wire_.byte_time;
        carry(direction, frame);
        if (random_.chance(wire_.faults.duplicate)) carry(direction, frame);
    }
}

void JoinedPorts::carry(Direction& direction, const Frame& frame) {
    if (random_.chance(wire_.faults.loss)) return;
    Flight flight{.arrives = direction.free_at + wire_.delay,
                  .start = frame.start,
                  .bytes{frame.bytes.begin(), frame.bytes.end()}};
    if (random_.chance(wire_.faults.damage)) flip_bit(flight.bytes, random_.next());
    direction.flights.push_back(std::move(flight));
}

void JoinedPorts::deliver(int to) {
    std::deque<Flight>& flights = directions_[1 - to].flights;
    for (; !flights.empty() && flights.front().arrives <= now_; flights.pop_front())
        ports_[to].on_frame({.start = flights.front().start, .bytes = flights.front().bytes}, now_);
}

JoinedPorts::Actor keep_sending(LinkPort& port, std::uint8_t sl, std::size_t payload) {
    return [&port, sl, payload, psn = std::uint32_t{0}](Time now) mutable {
        while (port.enqueue(data_packet(sl, payload, psn), now) == Enqueued::kQueued) ++psn;
        return kNoDeadline;
    };
}

JoinedPorts::Actor keep_taking(LinkPort& port, std::uint8_t vl, Time interval, std::uint64_t& words) {
    return [&port, vl, interval, &words, due = Time{0}](Time now) mutable {
        while (now >= due && !port.front(vl).empty()) {
            words += parse_lrh(port.front(vl).first<kLrhBytes>()).words;
            port.pop(vl);
            due = now + interval;
        }
        return port.front(vl).empty() ? kNoDeadline : due;
    };
}

}  // namespace uib::net::link

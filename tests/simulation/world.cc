#include "tests/simulation/world.h"

#include <algorithm>

namespace uib::simulation {
namespace {

constexpr std::size_t kHeaderBytes = 40;  ///< what a packet's headers and CRCs take on the wire, about

}  // namespace

Adapter& World::add(std::size_t memory_bytes, bool lend) {
    return adapters.emplace_back(*this, static_cast<net::Lid>(adapters.size() + 1), memory_bytes, lend);
}

void World::at(Time when, std::function<void()> what) {
    events_.push({std::max(when, clock_), order_++, nullptr, nullptr, std::move(what)});
}

void World::run() {
    for (std::uint64_t count = 0; !failed(); ++count) {
        if (count == event_limit) {
            fail("the world does not come to rest");
            return;
        }
        run_queue_pairs();
        const Time next = next_time();
        if (next == transport::kNever || failed()) return;
        clock_ = std::max(clock_, next);
        if (!events_.empty() && events_.top().at <= clock_) {
            const Event event = events_.top();
            events_.pop();
            if (event.flight != nullptr) {
                note_packet(Happening::kDelivered, *event.flight, event.to->lid());
                net::Packet packet = event.flight->packet;
                packet.payload = event.flight->payload;
                event.to->deliver(packet);
            } else {
                event.action();
            }
        }
        fire_timers();
    }
}

Time World::next_time() const {
    Time next = events_.empty() ? transport::kNever : events_.top().at;
    for (const Adapter& adapter : adapters)
        for (const Qp& qp : adapter.qps) next = std::min(next, qp.machine->next_timer());
    return next;
}

void World::run_queue_pairs() {
    constexpr int kRounds = 10'000;
    bool more = true;
    for (int round = 0; more && !failed(); ++round) {
        more = false;
        if (round == kRounds) fail("a queue pair wants to run and never ends");
        for (Adapter& adapter : adapters) {
            for (Qp& qp : adapter.qps) {
                if (!qp.machine->wants_run()) continue;
                if (!events_.empty() && laziness > 0 && random.chance(laziness)) continue;
                qp.machine->run(laziness > 0 ? random.draw32(1, 40) : 64);
                adapter.mover().end_turn();
                more = more || (events_.empty() && qp.machine->wants_run());
            }
        }
    }
}

void World::fire_timers() {
    for (Adapter& adapter : adapters) {
        for (Qp& qp : adapter.qps) {
            if (qp.machine->next_timer() > clock_) continue;
            note_state(Happening::kTimer, qp, 0);
            qp.machine->on_timer();
            adapter.mover().end_turn();
        }
    }
}

void World::carry(const Adapter& from, const net::Packet& packet) {
    ++packets;
    const auto flight = std::make_shared<Flight>();
    flight->packet = packet;
    flight->payload.assign(packet.payload.begin(), packet.payload.end());
    flight->packet.payload = {};
    flight->from = from.lid();
    if (packet.lrh.dlid >= net::kMulticastLidFirst) {
        for (Adapter& to : adapters) send_to(flight, to);
    } else if (packet.lrh.dlid != 0 && packet.lrh.dlid <= adapters.size()) {
        send_to(flight, adapters[packet.lrh.dlid - 1U]);
    } else {
        note_packet(Happening::kLost, *flight, packet.lrh.dlid);
    }
}

void World::send_to(const std::shared_ptr<Flight>& flight, Adapter& to) {
    Link& link = links_[{flight->from, to.lid()}];
    const std::size_t bytes = flight->payload.size() + kHeaderBytes;
    switch (link.fate(random, clock_)) {
        case Link::Fate::kArrives:
            break;
        case Link::Fate::kLost:
            note_packet(Happening::kLost, *flight, to.lid());
            return;
        case Link::Fate::kPartitioned:
            note_packet(Happening::kPartitioned, *flight, to.lid());
            return;
        case Link::Fate::kDamaged: {
            note_packet(Happening::kDamaged, *flight, to.lid());
            net::Packet whole = flight->packet;
            whole.payload = flight->payload;
            if (survives_damage(random, whole)) fail("a damaged packet passed the checks of its CRCs");
            return;
        }
    }
    note_packet(Happening::kSent, *flight, to.lid());
    events_.push({link.arrival(random, clock_, bytes), order_++, flight, &to, {}});
    if (link.faults.repeat > 0 && random.chance(link.faults.repeat))
        events_.push({link.arrival(random, clock_, bytes), order_++, flight, &to, {}});
}

void World::note_packet(Happening what, const Flight& flight, net::Lid to) {
    TraceEntry entry;
    entry.at = clock_;
    entry.what = what;
    entry.opcode = flight.packet.bth.opcode;
    entry.status = flight.packet.aeth.syndrome;
    entry.id = flight.packet.aeth.msn;
    entry.ack_req = flight.packet.bth.ack_req;
    entry.lid = flight.from;
    entry.peer_lid = to;
    entry.qp = flight.packet.bth.dest_qp;
    entry.psn = flight.packet.bth.psn;
    entry.length = static_cast<std::uint32_t>(flight.payload.size());
    trace.note(entry);
}

void World::note_completion(Happening what, const Qp& qp, const transport::Completion& completion) {
    TraceEntry entry;
    entry.at = clock_;
    entry.what = what;
    entry.id = completion.wr_id;
    entry.opcode = completion.opcode;
    entry.status = static_cast<std::uint8_t>(completion.status);
    entry.lid = qp.adapter->lid();
    entry.qp = qp.number();
    entry.length = completion.byte_len;
    trace.note(entry);
}

void World::note_state(Happening what, const Qp& qp, std::uint64_t value) {
    TraceEntry entry;
    entry.at = clock_;
    entry.what = what;
    entry.id = value;
    entry.lid = qp.adapter->lid();
    entry.qp = qp.number();
    trace.note(entry);
}

}  // namespace uib::simulation

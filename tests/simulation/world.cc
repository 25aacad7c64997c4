#include "tests/simulation/world.h"

#include <algorithm>
#include <cstdio>

namespace uib::simulation {
namespace {

constexpr std::size_t kTraceLines = 60;
constexpr Time kFlightTime = 2'000;

}  // namespace

Station& World::add(transport::Service service, std::uint32_t number, bool lend) {
    stations_.push_back(std::make_unique<Station>(service, number, lend));
    stations_.back()->room = 32;
    return *stations_.back();
}

bool World::run(std::size_t limit, const std::function<void()>& clients) {
    for (std::size_t events = 0; events < limit; ++events) {
        clients();
        run_stations();
        Time next = wire_.empty() ? transport::kNever : wire_.top().at;
        for (const auto& station : stations_) next = std::min(next, station->qp->next_timer());
        if (next == transport::kNever) return true;
        clock_ = std::max(clock_, next);
        for (const auto& station : stations_) station->clock = clock_;
        if (!wire_.empty() && wire_.top().at <= clock_) {
            const Flight flight = wire_.top();
            wire_.pop();
            note("arrives", *flight.to, flight.packet.get());
            flight.to->deliver(flight.packet->whole());
        }
        for (const auto& station : stations_) {
            if (station->qp->next_timer() > clock_) continue;
            note("timer", *station, nullptr);
            station->qp->on_timer();
        }
    }
    return false;
}

// Now and then a station is slow: its work waits for the next event.
void World::run_stations() {
    bool more = true;
    while (more) {
        more = false;
        for (const auto& station : stations_) {
            if (!station->qp->wants_run()) continue;
            if (!wire_.empty() && chance(0.3)) continue;
            station->qp->run(static_cast<std::uint32_t>(draw(1, 40)));
            station->mover().end_turn();
            carry(*station);
            more = more || (wire_.empty() && station->qp->wants_run());
        }
    }
}

void World::carry(Station& from) {
    for (SentPacket& sent : from.take_out()) {
        const auto packet = std::make_shared<SentPacket>(std::move(sent));
        const auto to = std::find_if(stations_.begin(), stations_.end(), [&](const auto& station) {
            return station->qp->config().number == packet->packet.bth.dest_qp;
        });
        if (to == stations_.end() || chance(faults_.loss)) {
            note("lost", from, packet.get());
            continue;
        }
        note("sent", from, packet.get());
        launch(packet, **to);
        if (chance(faults_.repeat)) launch(packet, **to);
    }
}

void World::launch(const std::shared_ptr<SentPacket>& packet, Station& to) {
    Time at = clock_ + kFlightTime;
    if (chance(faults_.delay)) at += draw(1, 20'000);
    wire_.push({at, order_++, &to, packet});
}

void World::note(const char* what, const Station& station, const SentPacket* packet) {
    char line[160];
    if (packet == nullptr) {
        std::snprintf(line, sizeof line, "%12llu qp %x %s", static_cast<unsigned long long>(clock_),
                      station.qp->config().number, what);
    } else {
        std::snprintf(
            line, sizeof line, "%12llu qp %x %s op %02x psn %06x bytes %zu ack %d syndrome %02x msn %u",
            static_cast<unsigned long long>(clock_), station.qp->config().number, what,
            packet->packet.bth.opcode, packet->psn(), packet->payload.size(),
            packet->packet.bth.ack_req ? 1 : 0, packet->packet.aeth.syndrome, packet->packet.aeth.msn);
    }
    trace_.emplace_back(line);
    if (trace_.size() > kTraceLines) trace_.pop_front();
}

std::string World::trace() const {
    std::string text;
    for (const std::string& line : trace_) text += line + '\n';
    return text;
}

}  // namespace uib::simulation

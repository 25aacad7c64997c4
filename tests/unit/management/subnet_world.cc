#include "tests/unit/management/subnet_world.h"

#include <gtest/gtest.h>

#include <set>

namespace uib::management {
namespace {

constexpr Time kDelay = 10'000;  // of a wire, ns
constexpr std::uint64_t kSwitchGuidOffset = 0x1000;

}  // namespace

// Managers go before the nodes they run on, everywhere, and no packet of theirs is on a wire by then.
SubnetWorld::~SubnetWorld() {
    for (auto& engine : engines_) engine->subnet->stop_manager();
}

std::size_t SubnetWorld::add(const EngineConfig& config) {
    auto engine = std::make_unique<Engine>();
    engine->base_guid = config.guid;
    std::vector<EngineSubnet::AdapterConfig> adapters;
    for (unsigned i = 0; i < config.adapters; ++i)
        adapters.push_back({engine->fabric.add_port(), config.guid + i, "adapter"});
    for (unsigned i = 0; i < config.externals; ++i) engine->fabric.add_external_port();
    engine->subnet =
        std::make_unique<EngineSubnet>(engine->fabric, config.guid + kSwitchGuidOffset, "switch", adapters);
    engines_.push_back(std::move(engine));
    return engines_.size() - 1;
}

std::size_t SubnetWorld::join(std::size_t a, unsigned a_port, std::size_t b, unsigned b_port) {
    auto wire = std::make_unique<Wire>();
    const std::pair<std::size_t, unsigned> sides[2] = {{a, a_port}, {b, b_port}};
    for (int i = 0; i < 2; ++i) {
        const auto [engine, external] = sides[i];
        const auto port = static_cast<PortIndex>(engines_[engine]->subnet->adapters() + external);
        End& end = wire->ends[i];
        end.world = this;
        end.wire = wire.get();
        end.engine = engine;
        end.port = port;
        end.other = &wire->ends[1 - i];
        engines_[engine]->subnet->connect(port, &end);
    }
    for (const End& end : wire->ends) engines_[end.engine]->subnet->set_external_link(end.port, true, now_);
    wires_.push_back(std::move(wire));
    return wires_.size() - 1;
}

void SubnetWorld::set_wire(std::size_t index, bool up) {
    Wire& wire = *wires_[index];
    wire.up = up;
    for (const End& end : wire.ends) engines_[end.engine]->subnet->set_external_link(end.port, up, now_);
}

void SubnetWorld::start(std::size_t engine, SubnetOptions options) {
    engines_[engine]->subnet->run_manager(options, now_);
}

void SubnetWorld::put(End& from, const SmpPacket& packet, Time now) {
    if (!from.wire->up || std::uniform_real_distribution<>(0, 1)(random_) < loss_) return;
    // As bytes: what does not survive the wire format is seen here.
    std::array<std::byte, net::kMadBytes> bytes{};
    net::build_smp(packet.smp, bytes);
    events_.push({now + kDelay, order_++, [this, bytes, packet, to = from.other] {
                      SmpPacket arrived{{}, packet.slid, packet.dlid};
                      ASSERT_EQ(net::parse_smp(bytes, arrived.smp), net::MadError::kNone);
                      if (to->wire->up) engines_[to->engine]->subnet->receive(to->port, arrived, now_);
                  }});
}

Time SubnetWorld::next() {
    Time at = events_.empty() ? kNever : events_.top().at;
    for (const auto& engine : engines_) at = std::min(at, engine->subnet->next_deadline());
    return at;
}

void SubnetWorld::step(Time at) {
    now_ = std::max(now_, at);
    while (!events_.empty() && events_.top().at <= now_) {
        const Event event = events_.top();
        events_.pop();
        event.happen();
    }
    for (const auto& engine : engines_)
        if (engine->subnet->next_deadline() <= now_) engine->subnet->on_timer(now_);
}

void SubnetWorld::run_for(Time span) {
    const Time end = now_ + span;
    while (next() <= end) step(next());
    now_ = end;
}

bool SubnetWorld::run_until_settled(Time span) {
    const Time end = now_ + span;
    const auto settled = [&] {
        if (!events_.empty()) return false;
        for (const auto& engine : engines_)
            if (const SubnetManager* manager = engine->subnet->manager();
                manager != nullptr && (!manager->settled() || manager->state() == SmState::kDiscovering ||
                                       manager->next_deadline() <= now_))
                return false;
        return true;
    };
    while (!settled()) {
        if (next() > end) return false;
        step(next());
    }
    return true;
}

SubnetWorld::End* SubnetWorld::end_at(std::size_t engine, PortIndex port) {
    for (const auto& wire : wires_)
        for (End& end : wire->ends)
            if (end.engine == engine && end.port == port) return &end;
    return nullptr;
}

std::pair<int, int> SubnetWorld::walk(std::size_t engine, net::Lid lid) {
    for (std::size_t hops = 0; hops <= engines_.size(); ++hops) {
        const net::InternalSwitch& fabric = engines_[engine]->fabric;
        const PortIndex port = fabric.route(lid);
        if (port == net::InternalSwitch::kNoPort) return {-1, -1};
        if (!fabric.external(port)) return {static_cast<int>(engine), static_cast<int>(port)};
        const End* end = end_at(engine, port);
        if (end == nullptr || !end->wire->up) return {-1, -1};
        engine = end->other->engine;
    }
    return {-1, -1};
}

std::map<std::pair<std::size_t, SubnetWorld::PortIndex>, unsigned> SubnetWorld::flood(std::size_t engine,
                                                                                      PortIndex from,
                                                                                      net::Lid mlid) {
    std::map<std::pair<std::size_t, PortIndex>, unsigned> copies;
    std::queue<std::pair<std::size_t, PortIndex>> arriving({{engine, from}});
    for (int packets = 0; !arriving.empty() && packets < 1000; ++packets) {
        const auto [at, ingress] = arriving.front();
        arriving.pop();
        const net::InternalSwitch& fabric = engines_[at]->fabric;
        for (const PortIndex port : fabric.members(mlid)) {
            if (!fabric.external(port)) {
                ++copies[{at, port}];
            } else if (port != ingress) {
                const End* end = end_at(at, port);
                if (end != nullptr && end->wire->up) arriving.push({end->other->engine, end->other->port});
            }
        }
    }
    return copies;
}

net::Lid SubnetWorld::lid(std::size_t engine, std::size_t adapter) {
    return static_cast<net::Lid>(engines_[engine]->subnet->port_of(adapter).info.lid);
}

void SubnetWorld::expect_whole(const std::vector<std::size_t>& engines) {
    std::set<net::Lid> lids;
    for (const std::size_t to : engines) {
        EngineSubnet& subnet = *engines_[to]->subnet;
        const auto own = static_cast<net::Lid>(subnet.switch_node().node().port(0).info.lid);
        EXPECT_NE(own, 0) << "switch of engine " << to;
        EXPECT_TRUE(lids.insert(own).second) << "LID " << own << " twice";
        for (std::size_t adapter = 0; adapter < subnet.adapters(); ++adapter) {
            const PortInfo& info = subnet.port_of(adapter).info;
            EXPECT_EQ(info.port_state, kStateActive) << "engine " << to << " adapter " << adapter;
            for (unsigned bits = 0; bits < 1U << info.lmc; ++bits) {
                const auto lid = static_cast<net::Lid>(info.lid + bits);
                EXPECT_TRUE(lids.insert(lid).second) << "LID " << lid << " twice";
                for (const std::size_t from : engines)
                    EXPECT_EQ(walk(from, lid), std::pair(static_cast<int>(to), static_cast<int>(adapter)))
                        << "from engine " << from << " to LID " << lid;
            }
        }
    }
}

std::vector<std::size_t> SubnetWorld::masters() {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < engines_.size(); ++i)
        if (const SubnetManager* manager = engines_[i]->subnet->manager();
            manager != nullptr && manager->state() == SmState::kMaster)
            found.push_back(i);
    return found;
}

}  // namespace uib::management

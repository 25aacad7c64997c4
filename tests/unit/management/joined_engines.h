// Engines joined by trunks: frames in memory, subnet managers, general services, packets from end port to end
// port.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "engine/management/general_services.h"
#include "engine/management/trunk_joint.h"
#include "net/port/memory_port.h"

namespace uib::management {

inline constexpr Time kMillisecond = 1'000'000;
inline constexpr unsigned kAdapters = 2;
inline constexpr unsigned kSlots = 2;

class JoinedEngines : public ::testing::Test {
  protected:
    struct Arrived {
        net::InternalSwitch::PortIndex port;
        std::uint32_t psn;
        std::vector<std::byte> payload;
    };
    /// A trunk and the Ethernet segment it is at.
    struct Cable {
        unsigned segment = 0;
        net::MemoryPort* frames = nullptr;
        std::unique_ptr<TrunkJoint> joint;
    };
    struct Engine {
        net::InternalSwitch fabric;
        std::unique_ptr<EngineSubnet> subnet;
        std::vector<Cable> cables;
        net::MemoryPort* frames = nullptr;  ///< of the first cable
        TrunkJoint* joint = nullptr;        ///< of the first cable
        std::unique_ptr<GeneralServices> general;
        std::vector<Arrived> arrived;
        bool silent = false;
    };

    Engine& add(std::uint64_t guid, std::uint8_t mac, const std::vector<unsigned>& segments = {0}) {
        auto engine = std::make_unique<Engine>();
        std::vector<EngineSubnet::AdapterConfig> adapters;
        for (unsigned i = 0; i < kAdapters; ++i)
            adapters.push_back({engine->fabric.add_port(), guid + i, "adapter"});
        auto first = static_cast<net::InternalSwitch::PortIndex>(engine->fabric.ports());
        for (unsigned i = 0; i < kSlots * segments.size(); ++i) engine->fabric.add_external_port();
        engine->subnet = std::make_unique<EngineSubnet>(engine->fabric, guid + 0x1000, "switch", adapters);
        for (const unsigned segment : segments) {
            plug(*engine, segment, guid, mac, first);
            first += kSlots;
        }
        engine->frames = engine->cables[0].frames;
        engine->joint = engine->cables[0].joint.get();
        for (const Cable& cable : engine->cables)
            for (const Cable& other : engine->cables)
                if (&cable != &other) cable.joint->meet(*other.joint);
        engine->general = std::make_unique<GeneralServices>(*engine->subnet);
        engine->subnet->on_change([this, made = engine.get()](std::size_t adapter) {
            made->general->memberships().port_changed(adapter, now_);
        });
        engine->subnet->run_manager({}, now_);
        engines_.push_back(std::move(engine));
        return *engines_.back();
    }

    static void plug(Engine& engine, unsigned segment, std::uint64_t guid, std::uint8_t mac,
                     net::InternalSwitch::PortIndex first) {
        auto port = std::make_unique<net::MemoryPort>(net::MacAddress{2, 0, 0, 0, 0, mac}, 4500);
        Cable& cable = engine.cables.emplace_back();
        cable.segment = segment;
        cable.frames = port.get();
        net::IbTrunkOptions options;
        options.identity = guid;
        options.slots = kSlots;
        options.link.role = net::link::PortRole::kSwitch;
        options.link.input_ports = static_cast<unsigned>(engine.fabric.ports()) + 1;
        cable.joint = std::make_unique<TrunkJoint>(std::make_unique<net::IbTrunk>(std::move(port), options),
                                                   *engine.subnet, engine.fabric, first);
    }

    void run(Time time) {
        for (const Time end = now_ + time; now_ < end; now_ += kMillisecond / 2) step();
    }
    void step() {
        for (const auto& engine : engines_) {
            if (engine->subnet->next_deadline() <= now_) engine->subnet->on_timer(now_);
            for (const Cable& cable : engine->cables)
                cable.joint->receive(now_, [&](net::InternalSwitch::PortIndex port, net::Packet& packet) {
                    arrive(*engine, port, packet);
                });
            if (engine->general->next_deadline() <= now_) engine->general->on_timer(now_);
            for (GeneralServices::Datagram& datagram : engine->general->take_outgoing()) {
                datagram.packet.payload = datagram.mad;
                send(*engine, datagram.packet);
            }
            for (const Cable& cable : engine->cables) cable.joint->end_turn(now_);
            for (const Cable& cable : engine->cables) {
                for (; !cable.frames->sent.empty(); cable.frames->sent.pop_front())
                    if (!engine->silent && !(lose && lose())) carry(*engine, cable);
            }
        }
    }
    /// The oldest frame sent, to whom it is for at its segment.
    void carry(const Engine& from, const Cable& cable) {
        const net::MemoryPort::Frame& frame = cable.frames->sent.front();
        for (const auto& to : engines_) {
            if (to.get() == &from || to->silent) continue;
            for (const Cable& end : to->cables) {
                const net::MacAddress mac = end.frames->mac();
                if (end.segment == cable.segment &&
                    (frame[0] == std::byte{0xFF} || frame[5] == std::byte{mac[5]}))
                    end.frames->arriving.push_back(frame);
            }
        }
    }
    void arrive(Engine& engine, net::InternalSwitch::PortIndex port, const net::Packet& packet) {
        if (packet.bth.dest_qp == kGeneralServicesQp) {
            engine.general->receive(port, packet, now_);
        } else {
            engine.arrived.push_back({port, packet.bth.psn, {packet.payload.begin(), packet.payload.end()}});
        }
    }
    /// As the lane does: into end ports of the engine, and onto its links.
    void send(Engine& engine, const net::Packet& packet) {
        std::vector<net::InternalSwitch::PortIndex> ports = engine.fabric.members(packet.lrh.dlid);
        if (packet.lrh.dlid < net::kMulticastLidFirst) ports = {engine.fabric.route(packet.lrh.dlid)};
        for (const auto port : ports) {
            if (port == net::InternalSwitch::kNoPort) continue;
            if (engine.fabric.external(port)) {
                for (const Cable& cable : engine.cables)
                    if (cable.joint->owns(port)) cable.joint->send(port, packet, now_);
            } else {
                arrive(engine, port, packet);
            }
        }
    }
    static net::Lid lid(const Engine& engine, unsigned adapter) {
        return static_cast<net::Lid>(engine.subnet->port_of(adapter).info.lid);
    }
    static bool active(const Engine& engine, unsigned adapter) {
        return engine.subnet->port_of(adapter).info.port_state == kStateActive;
    }
    static net::Packet packet(net::Lid from, net::Lid to, std::uint32_t psn,
                              std::span<const std::byte> payload) {
        net::Packet out;
        out.lrh.slid = from;
        out.lrh.dlid = to;
        out.bth.opcode = 0x04;
        out.bth.dest_qp = 9;
        out.bth.psn = psn;
        out.bth.pad = static_cast<std::uint8_t>(-payload.size() & 3);
        out.payload = payload;
        return out;
    }
    void expect_reachable(Engine& from, unsigned a, Engine& to, unsigned b) {
        const net::Lid target = lid(to, b);
        const auto port = from.fabric.route(target);
        ASSERT_NE(port, net::InternalSwitch::kNoPort) << "LID " << target;
        ASSERT_TRUE(from.fabric.external(port));
        std::vector<std::byte> payload(777);
        for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 3);
        to.arrived.clear();
        from.joint->send(port, packet(lid(from, a), target, 42, payload), now_);
        run(3 * kMillisecond);
        ASSERT_EQ(to.arrived.size(), 1U) << lid(from, a) << " to " << target;
        EXPECT_EQ(to.arrived[0].port, b);
        EXPECT_EQ(to.arrived[0].payload, payload);
    }

    Time now_ = 1'000'000'000;
    std::vector<std::unique_ptr<Engine>> engines_;
    std::function<bool()> lose;
};

}  // namespace uib::management

// Writes garbage where the provider writes work requests, and rings. Usage: ring_vandal SCENARIO SEED DEVICE
// (no SCENARIO: a list of them). The engine's socket is found as the provider finds it.
//
// Each scenario makes a real context with connected QPs by hand (raw_client.h), breaks one rule, rings, and
// looks whether the engine still answers it. Both outcomes are right for this client, a served or a closed
// context, but for some scenarios which only the latter; the test asks the engine through another client.
// Exit status 0: the scenario was played; 1: it could not be.
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "engine/ipc/control_cq.h"
#include "engine/ipc/control_memory.h"
#include "engine/ipc/control_qp.h"
#include "engine/ipc/control_srq.h"
#include "engine/ipc/socket_path.h"
#include "tests/integration/raw_client.h"

namespace {

using namespace uib;
using test::RawClient;

constexpr std::uint32_t kRtrMask = 0x1 | 0x80 | 0x100 | 0x1000 | 0x100000 | 0x20000 | 0x8000;
constexpr std::uint32_t kInitMask = 0x1 | 0x8 | 0x10 | 0x20;
constexpr std::uint32_t kRtsMask = 0x1 | 0x200 | 0x400 | 0x800 | 0x10000 | 0x2000;

/// A context with two RC QPs that talk to one another, ready to be abused.
struct Scene {
    Scene(const std::string& device, unsigned seed) : client(ipc::socket_path(), device), random(seed) {
        pd = client.call<ipc::HandleBody>(ipc::Operation::kAllocPd, Empty{}).handle;
        memory.resize(std::size_t{1} << 20);
        ipc::RegMrRequest region{};
        region.pd = pd;
        region.access = ipc::kAccessLocalWrite | ipc::kAccessRemoteWrite | ipc::kAccessRemoteRead |
                        ipc::kAccessRemoteAtomic;
        region.address = region.iova = reinterpret_cast<std::uintptr_t>(memory.data());
        region.length = memory.size();
        keys = client.call<ipc::RegMrReply>(ipc::Operation::kRegMr, region);
        ipc::CreateCqRequest queue{};
        queue.entries = 256;
        cq = client.call<ipc::CqReply>(ipc::Operation::kCreateCq, queue);
        for (ipc::QpReply& qp : qps) qp = make_qp();
        connect(qps[0], qps[1].qp_number);
        connect(qps[1], qps[0].qp_number);
    }

    struct Empty {};

    /// `srq`: handle + 1.
    ipc::QpReply make_qp(std::uint32_t srq = 0) {
        ipc::CreateQpRequest request{};
        request.pd = pd;
        request.srq = srq;
        request.send_cq = request.recv_cq = cq.handle;
        request.service = static_cast<std::uint32_t>(ipc::Service::kRc);
        request.max_send_wr = request.max_recv_wr = 64;
        request.max_send_sge = request.max_recv_sge = 8;
        request.max_inline = 192;
        return client.call<ipc::QpReply>(ipc::Operation::kCreateQp, request);
    }

    void connect(const ipc::QpReply& qp, std::uint32_t peer) {
        ipc::ModifyQpRequest request{};
        request.handle = qp.handle;
        ipc::QpAttributes& to = request.attributes;
        to.port = 1;
        to.access = 0xF;
        to.state = 1;
        request.mask = kInitMask;
        modify(request);
        to.state = 2;
        to.path.dlid = 1;
        to.path.port = 1;
        to.path_mtu = 3;
        to.dest_qp_number = peer;
        to.max_dest_rd_atomic = to.max_rd_atomic = 4;
        to.min_rnr_timer = 1;
        request.mask = kRtrMask;
        modify(request);
        to.state = 3;
        to.timeout = 10;
        to.retry_count = 2;
        to.rnr_retry = 2;
        request.mask = kRtsMask;
        modify(request);
    }

    void modify(const ipc::ModifyQpRequest& request) {
        client.call<Empty>(ipc::Operation::kModifyQp, request);
    }

    ipc::QueueControl& control(const ipc::QueueLocation& queue) const {
        return *reinterpret_cast<ipc::QueueControl*>(client.at(queue.control));
    }
    std::byte* slot(const ipc::QueueLocation& queue, std::uint32_t index) const {
        return client.at(queue.slots) + std::size_t{index & (queue.entries - 1)} * queue.stride;
    }

    void randomise(std::byte* bytes, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(random());
    }

    void ring_all() {
        for (const ipc::QpReply& qp : qps) client.doorbells().ring(qp.slot);
        client.wake();
    }

    /// A work request that is nearly right, with one field after another drawn at random.
    void write_plausible(std::byte* where, const ipc::QueueLocation& queue) {
        ipc::SendWqe request{};
        request.opcode = static_cast<std::uint8_t>(random() % 12);
        request.flags = static_cast<std::uint8_t>(random());
        request.sge_count = static_cast<std::uint8_t>(random() % 3 == 0 ? random() : random() % 9);
        request.inline_length = static_cast<std::uint32_t>(random() % 3 == 0 ? random() : random() % 200);
        request.wr_id = random();
        request.immediate = static_cast<std::uint32_t>(random());
        request.rkey = random() % 2 == 0 ? keys.rkey : static_cast<std::uint32_t>(random());
        request.remote_address =
            random() % 2 == 0 ? reinterpret_cast<std::uintptr_t>(memory.data()) + random() % 65536 : random();
        request.compare_add = random();
        request.swap = random();
        request.remote_qpn = static_cast<std::uint32_t>(random());
        request.window_handle = static_cast<std::uint32_t>(random());
        std::memcpy(where, &request, sizeof request);
        for (std::uint32_t i = 0; i < queue.max_sge; ++i) {
            ipc::ScatterGatherEntry piece{};
            piece.address = random() % 2 == 0
                                ? reinterpret_cast<std::uintptr_t>(memory.data()) + random() % 65536
                                : random();
            piece.length = static_cast<std::uint32_t>(random() % 2 == 0 ? random() : random() % 4096);
            piece.lkey = random() % 2 == 0 ? keys.lkey : static_cast<std::uint32_t>(random());
            std::memcpy(where + ipc::kSendPayloadOffset + i * sizeof piece, &piece, sizeof piece);
        }
    }

    RawClient client;
    std::mt19937_64 random;
    std::uint32_t pd = 0;
    std::vector<std::byte> memory;
    ipc::RegMrReply keys{};
    ipc::CqReply cq{};
    ipc::QpReply qps[2]{};
    bool must_close = false;  ///< the engine is to close the context for what was done
};

void pause_a_little() {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void producer_far_ahead(Scene& scene) {
    for (const std::uint32_t ahead : {65U, 1000U, 0x7FFFFFFFU, 0x80000001U, 0xFFFFFFFFU}) {
        for (const ipc::QpReply& qp : scene.qps) scene.control(qp.send).producer.store(ahead);
        scene.ring_all();
        pause_a_little();
    }
}

void receive_producer_far_ahead(Scene& scene) {
    for (const ipc::QpReply& qp : scene.qps) scene.control(qp.receive).producer.store(0x80000000U);
    scene.ring_all();
    scene.write_plausible(scene.slot(scene.qps[0].send, 0), scene.qps[0].send);
    scene.slot(scene.qps[0].send, 0)[0] = std::byte{0};  // a SEND, so that a receive is looked for
    scene.control(scene.qps[0].send).producer.store(1);
    scene.ring_all();
}

/// A SEND to a QP that draws from an SRQ, whose ring is then as `broken` makes it.
template <typename Break>
void send_to_srq(Scene& scene, Break broken) {
    ipc::CreateSrqRequest request{};
    request.pd = scene.pd;
    request.max_wr = 16;
    request.max_sge = 1;
    const auto srq = scene.client.call<ipc::SrqReply>(ipc::Operation::kCreateSrq, request);
    const ipc::QpReply from = scene.make_qp(), to = scene.make_qp(srq.handle + 1);
    scene.connect(from, to.qp_number);
    scene.connect(to, from.qp_number);
    broken(scene.control(srq.queue), *reinterpret_cast<std::uint32_t*>(scene.client.at(srq.available)));
    ipc::SendWqe send{};
    send.opcode = static_cast<std::uint8_t>(ipc::WorkOpcode::kSend);
    std::memcpy(scene.slot(from.send, 0), &send, sizeof send);
    scene.control(from.send).producer.store(1);
    scene.client.doorbells().ring(from.slot);
    scene.client.wake();
    scene.must_close = true;
}

void srq_producer_far_ahead(Scene& scene) {
    send_to_srq(scene, [](ipc::QueueControl& control, std::uint32_t&) { control.producer.store(17); });
}

void srq_list_names_no_slot(Scene& scene) {
    send_to_srq(scene, [](ipc::QueueControl& control, std::uint32_t& first) {
        first = 0x80000000U;
        control.producer.store(1);
    });
}

void plausible_requests(Scene& scene) {
    std::uint32_t producer = 0;
    for (int round = 0; round < 50; ++round) {
        for (int i = 0; i < 16; ++i, ++producer)
            for (const ipc::QpReply& qp : scene.qps)
                scene.write_plausible(scene.slot(qp.send, producer), qp.send);
        for (const ipc::QpReply& qp : scene.qps) scene.control(qp.send).producer.store(producer);
        scene.ring_all();
        std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
}

void random_slots(Scene& scene) {
    for (const ipc::QpReply& qp : scene.qps)
        for (const ipc::QueueLocation* queue : {&qp.send, &qp.receive}) {
            scene.randomise(scene.client.at(queue->slots), std::size_t{queue->entries} * queue->stride);
            scene.control(*queue).producer.store(queue->entries);
        }
    scene.ring_all();
}

void completion_ring(Scene& scene) {
    auto& control = *reinterpret_cast<ipc::CqControl*>(scene.client.at(scene.cq.control));
    control.consumer.store(0x80000000U);
    control.armed.store(77);
    control.producer.store(0x12345678);
    control.overrun.store(1);
    scene.randomise(scene.client.at(scene.cq.ring), std::size_t{scene.cq.entries} * sizeof(ipc::Cqe));
    plausible_requests(scene);
}

void doorbells_of_nobody(Scene& scene) {
    for (int i = 0; i < 5000; ++i) {
        scene.client.doorbells().ring(static_cast<std::uint32_t>(scene.random() % ipc::kDoorbellSlots));
        if (i % 100 == 0) scene.client.wake();
    }
    ipc::DoorbellMap& map = scene.client.doorbells();
    for (auto& word : map.leaf) word.store(UINT64_MAX);
    for (auto& word : map.middle) word.store(UINT64_MAX);
    map.top.store(UINT64_MAX);
    scene.client.wake();
}

/// Everything that is mapped is overwritten again and again while the engine reads it.
void all_memory(Scene& scene) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    while (std::chrono::steady_clock::now() < end) {
        for (const auto& chunk : scene.client.chunks()) {
            for (int i = 0; i < 4096; ++i)
                scene.randomise(chunk.data() + scene.random() % (chunk.size() - 8), 8);
        }
        scene.client.wake();
    }
}

void requests_that_change(Scene& scene) {
    std::thread changer([&scene] {
        std::mt19937_64 random(1);
        for (int i = 0; i < 2000000; ++i) {
            std::byte* target = scene.slot(scene.qps[0].send, static_cast<std::uint32_t>(random()));
            reinterpret_cast<volatile std::uint8_t*>(target)[random() % 128] =
                static_cast<std::uint8_t>(random());
        }
    });
    plausible_requests(scene);
    changer.join();
}

void wake_storm(Scene& scene) {
    for (int i = 0; i < 20000; ++i) scene.client.wake();
}

void memory_taken_away(Scene& scene) {
    for (std::uint32_t i = 0; i < 64; ++i) {
        ipc::SendWqe request{};
        request.opcode = static_cast<std::uint8_t>(ipc::WorkOpcode::kRdmaWrite);
        request.flags = ipc::kWorkSignaled;
        request.sge_count = 1;
        request.rkey = scene.keys.rkey;
        request.remote_address = reinterpret_cast<std::uintptr_t>(scene.memory.data());
        const ipc::ScatterGatherEntry piece{request.remote_address, 1U << 20, scene.keys.lkey};
        std::byte* where = scene.slot(scene.qps[0].send, i);
        std::memcpy(where, &request, sizeof request);
        std::memcpy(where + ipc::kSendPayloadOffset, &piece, sizeof piece);
    }
    scene.control(scene.qps[0].send).producer.store(64);
    scene.ring_all();
    scene.memory = std::vector<std::byte>();  // a large block: its pages go back to the kernel
}

const std::map<std::string, std::function<void(Scene&)>> kScenarios = {
    {"producer_far_ahead", producer_far_ahead},
    {"receive_producer_far_ahead", receive_producer_far_ahead},
    {"srq_producer_far_ahead", srq_producer_far_ahead},
    {"srq_list_names_no_slot", srq_list_names_no_slot},
    {"plausible_requests", plausible_requests},
    {"random_slots", random_slots},
    {"completion_ring", completion_ring},
    {"doorbells_of_nobody", doorbells_of_nobody},
    {"all_memory", all_memory},
    {"requests_that_change", requests_that_change},
    {"wake_storm", wake_storm},
    {"memory_taken_away", memory_taken_away},
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        for (const auto& [name, play] : kScenarios) std::printf("%s\n", name.c_str());
        return 0;
    }
    try {
        const auto found = kScenarios.find(argv[1]);
        if (found == kScenarios.end()) throw std::runtime_error("no such scenario");
        Scene scene(argc > 3 ? argv[3] : "uib0",
                    argc > 2 ? static_cast<unsigned>(std::strtoul(argv[2], nullptr, 0)) : 1);
        found->second(scene);
        pause_a_little();
        if (scene.must_close && !scene.client.closes()) throw std::runtime_error("the context is not closed");
        try {
            scene.client.call<ipc::HandleBody>(ipc::Operation::kAllocPd, Scene::Empty{});
            std::printf("%s: played, the context is still served\n", argv[1]);
        } catch (const test::Closed&) {
            std::printf("%s: played, the engine closed the context\n", argv[1]);
        } catch (const test::Refused& refusal) {
            std::printf("%s: played, the engine refuses: %s\n", argv[1], refusal.what());
        }
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "ring_vandal %s: %s\n", argc > 1 ? argv[1] : "", error.what());
        return 1;
    }
}

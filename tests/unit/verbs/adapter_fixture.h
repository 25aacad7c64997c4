// A client of the adapter without provider, socket or second process: it writes the shared rings by hand, as
// a provider (or an attacker) would, and turns the adapter itself.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/ipc/ring.h"
#include "engine/verbs/adapter.h"
#include "engine/verbs/context.h"
#include "engine/verbs/qp.h"

namespace uib::verbs {

/// Where a location of the client's arena is in this process: the test maps the chunks as a client does.
class ChunkMap {
  public:
    explicit ChunkMap(Client& client) : client_(client) {}
    ~ChunkMap();
    std::byte* at(const ipc::Location& location);

  private:
    struct Mapping {
        std::byte* memory;
        std::size_t size;
    };
    Client& client_;
    std::vector<Mapping> chunks_;
};

/// Client side of one QP.
struct TestQp {
    ipc::QpReply reply{};
    std::byte* send_slots = nullptr;
    ipc::QueueControl* send_control = nullptr;
    std::byte* receive_slots = nullptr;
    ipc::QueueControl* receive_control = nullptr;
    std::uint32_t sends = 0;
    std::uint32_t receives = 0;
};

/// What a test looks at of a completion.
struct Entry {
    std::uint64_t wr_id = 0;
    std::uint64_t timestamp_ns = 0;
    std::uint32_t byte_len = 0;
    std::uint32_t immediate = 0;
    std::uint32_t qp_number = 0;
    std::uint32_t qp_slot = 0;
    std::uint32_t wqe_index = 0;
    std::uint16_t flags = 0;
    std::uint8_t status = 255;
    std::uint8_t opcode = 255;
};

struct TestCq {
    ipc::CqReply reply{};
    ipc::CqControl* control = nullptr;
    ipc::Cqe* ring = nullptr;
    std::uint32_t polled = 0;
};

class AdapterTest : public ::testing::Test {
  protected:
    explicit AdapterTest(const std::vector<DeviceConfig>& devices = {"uib0", "uib1"},
                         const std::vector<SubnetConfig>& subnets = std::vector<SubnetConfig>(1));
    ~AdapterTest() override;

    TestCq make_cq(std::uint32_t entries, std::uint32_t channel = 0);
    TestQp make_qp(const TestCq& cq, ipc::Service service = ipc::Service::kRc, std::uint32_t srq = 0);
    int modify(const TestQp& qp, std::uint8_t state, std::uint32_t mask, ipc::QpAttributes attributes);
    /// To RTS, connected to `peer` over `dlid`.
    void connect(const TestQp& qp, const TestQp& peer, std::uint16_t dlid = 1);
    ipc::RegMrReply register_memory(void* address, std::size_t length, std::uint32_t access);

    void post_receive(TestQp& qp, std::uint64_t wr_id, void* address, std::uint32_t length,
                      std::uint32_t lkey);
    /// Writes `wqe` (and one entry) into the next slot and publishes it.
    void post_send(TestQp& qp, ipc::SendWqe wqe, void* address, std::uint32_t length, std::uint32_t lkey);
    void publish_send(TestQp& qp, std::uint32_t producer);

    std::optional<Entry> poll(TestCq& cq);
    /// Turns the adapter until `cq` has an entry; fails the test after a while.
    Entry wait(TestCq& cq);
    void turn(unsigned times = 200);
    /// The asynchronous events that the client has not read yet.
    std::vector<ipc::AsyncEvent> take_events();

    Adapter adapter_;
    int async_pipe_[2] = {-1, -1};
    std::unique_ptr<Client> client_;
    std::unique_ptr<Context> context_;
    std::unique_ptr<ChunkMap> chunks_;
    std::uint32_t pd_ = 0;
};

}  // namespace uib::verbs

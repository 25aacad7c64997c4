// Work queues, indirection tables and the raw packet queue pairs that spread frames over them.
#include <cerrno>
#include <set>
#include <vector>

#include "engine/verbs/rx_hash.h"
#include "tests/unit/verbs/ethernet_fixture.h"

namespace uib::verbs {
namespace {

constexpr std::uint32_t kFields = ipc::kHashSourceIpv4 | ipc::kHashDestinationIpv4;
constexpr std::uint32_t kFrameBytes = 64;

class ReceiveScalingTest : public EthernetTest {
  protected:
    TestQp make_wq(const TestCq& cq, std::uint64_t user_handle = 0xD0) {
        TestQp wq;
        EXPECT_EQ(context_->create_wq(*client_, {user_handle, pd_, cq.reply.handle, 16, 1}, wq.reply), 0);
        EXPECT_EQ(wq.reply.send.entries, 0U);
        wq.receive_control = reinterpret_cast<ipc::QueueControl*>(chunks_->at(wq.reply.receive.control));
        wq.receive_slots = chunks_->at(wq.reply.receive.slots);
        return wq;
    }
    int move(const TestQp& wq, ipc::WqState state) {
        return context_->modify_wq({wq.reply.handle, static_cast<std::uint32_t>(state)});
    }
    TestQp make_ready(const TestCq& cq) {
        TestQp wq = make_wq(cq);
        EXPECT_EQ(move(wq, ipc::WqState::kReady), 0);
        return wq;
    }
    int make_table(const std::vector<TestQp>& wqs, std::uint32_t& handle) {
        ipc::CreateRwqTableRequest request{};
        request.entries = static_cast<std::uint32_t>(wqs.size());
        for (std::size_t i = 0; i < wqs.size(); ++i) request.wqs[i] = wqs[i].reply.handle;
        return context_->create_rwq_table(*client_, request, handle);
    }
    ipc::CreateHashQpRequest hash_request(std::uint32_t table) const {
        ipc::CreateHashQpRequest request{};
        request.pd = pd_;
        request.table = table;
        request.fields = kFields;
        for (unsigned i = 0; i < ipc::kHashKeyBytes; ++i)
            request.key[i] = static_cast<std::uint8_t>(i * 37 + 11);
        return request;
    }
    TestQp make_hash_qp(std::uint32_t table) {
        TestQp qp;
        EXPECT_EQ(context_->create_hash_qp(*client_, hash_request(table), qp.reply), 0);
        return qp;
    }
    /// An IPv4 frame to device 0 from 10.0.0.`host`.
    void send_ipv4(TestQp& sender, unsigned host) {
        std::memset(buffer_, 0, kFrameBytes);
        const std::uint8_t ip[] = {0x08, 0x00, 0x45, 0, 0, 50, 0, 0, 0,
                                   0,    64,   17,   0, 0, 10, 0, 0, static_cast<std::uint8_t>(host),
                                   10,   0,    1,    1};
        std::memcpy(buffer_ + 12, ip, sizeof ip);
        send_frame(sender, mac(0));
    }
    std::uint32_t expected_entry(unsigned host, std::uint32_t entries) const {
        const ipc::CreateHashQpRequest request = hash_request(0);
        HashKey key;
        std::copy(std::begin(request.key), std::end(request.key), key.begin());
        const std::uint8_t input[] = {10, 0, 0, static_cast<std::uint8_t>(host), 10, 0, 1, 1};
        return toeplitz(key, input) & (entries - 1);
    }
};

TEST_F(ReceiveScalingTest, frames_are_spread_by_their_addresses) {
    constexpr unsigned kQueues = 4, kHosts = 24;
    TestCq send_cq = make_cq(64);
    TestQp sender = make_raw(send_cq);
    std::vector<TestCq> cqs;
    std::vector<TestQp> wqs;
    for (unsigned i = 0; i < kQueues; ++i) {
        cqs.push_back(make_cq(64));
        wqs.push_back(make_ready(cqs.back()));
        for (unsigned k = 0; k < 16; ++k) post_receive(wqs[i], k, buffer_ + 1024, 1000, key_);
    }
    std::uint32_t table = 0, flow = 0;
    ASSERT_EQ(make_table(wqs, table), 0);
    const TestQp hash_qp = make_hash_qp(table);
    ASSERT_EQ(context_->create_flow(*client_, rule_for(hash_qp, mac(0)), flow), 0);
    std::set<std::uint32_t> used;
    for (unsigned host = 0; host < kHosts; ++host) {
        const std::uint32_t entry = expected_entry(host, kQueues);
        used.insert(entry);
        send_ipv4(sender, host);
        ASSERT_EQ(wait(send_cq).status, 0);
        const Entry got = wait(cqs[entry]);
        EXPECT_EQ(got.status, 0);
        EXPECT_EQ(got.byte_len, kFrameBytes);
        EXPECT_EQ(got.qp_number, wqs[entry].reply.qp_number);
        EXPECT_EQ(got.qp_slot, wqs[entry].reply.slot);
        for (TestCq& cq : cqs) EXPECT_FALSE(poll(cq));
    }
    EXPECT_GT(used.size(), 1U);
}

TEST_F(ReceiveScalingTest, objects_go_after_what_uses_them) {
    const TestCq cq = make_cq(16);
    const TestQp wq = make_ready(cq);
    std::uint32_t table = 0, flow = 0;
    ASSERT_EQ(make_table({wq, wq}, table), 0);
    const TestQp qp = make_hash_qp(table);
    ASSERT_EQ(context_->create_flow(*client_, rule_for(qp, mac(0)), flow), 0);
    ipc::EventsReply events{};
    EXPECT_EQ(context_->destroy_cq(cq.reply.handle, events), EBUSY);
    EXPECT_EQ(context_->destroy_wq(wq.reply.handle, events), EBUSY);
    EXPECT_EQ(context_->destroy_rwq_table(table), EBUSY);
    EXPECT_EQ(context_->destroy_qp(qp.reply.handle, events), EBUSY);
    EXPECT_EQ(context_->destroy_flow(flow), 0);
    EXPECT_EQ(context_->destroy_qp(qp.reply.handle, events), 0);
    EXPECT_EQ(context_->destroy_rwq_table(table), 0);
    EXPECT_EQ(context_->destroy_rwq_table(table), ENOENT);
    EXPECT_EQ(context_->destroy_wq(wq.reply.handle, events), 0);
    EXPECT_EQ(context_->destroy_wq(wq.reply.handle, events), ENOENT);
    EXPECT_EQ(context_->destroy_cq(cq.reply.handle, events), 0);
}

TEST_F(ReceiveScalingTest, a_client_that_goes_takes_all_of_it_along) {
    const TestCq cq = make_cq(16);
    std::uint32_t table = 0, flow = 0;
    ASSERT_EQ(make_table({make_ready(cq), make_wq(cq)}, table), 0);
    ASSERT_EQ(context_->create_flow(*client_, rule_for(make_hash_qp(table), mac(0)), flow), 0);
    EXPECT_EQ(context_->counts().wq, 2U);
    EXPECT_EQ(context_->counts().rwq_table, 1U);
    context_->remove_client(*client_);
    const ObjectCounts left = context_->counts();
    EXPECT_EQ(left.wq + left.rwq_table + left.qp + left.cq + left.pd, 0U);
    EXPECT_EQ(context_->alloc_pd(*client_, pd_), 0);
}

TEST_F(ReceiveScalingTest, a_work_queue_has_three_states) {
    TestCq cq = make_cq(16), send_cq = make_cq(16);
    TestQp sender = make_raw(send_cq), wq = make_wq(cq);
    std::uint32_t table = 0, flow = 0;
    ASSERT_EQ(make_table({wq}, table), 0);
    ASSERT_EQ(context_->create_flow(*client_, rule_for(make_hash_qp(table), mac(0)), flow), 0);
    send_ipv4(sender, 1);  // reset: dropped
    EXPECT_EQ(wait(send_cq).status, 0);
    EXPECT_EQ(move(wq, ipc::WqState::kReady), 0);
    EXPECT_EQ(move(wq, ipc::WqState::kReady), 0);
    post_receive(wq, 1, buffer_ + 1024, 1000, key_);
    post_receive(wq, 2, buffer_ + 1024, 1000, key_);
    turn();
    EXPECT_FALSE(poll(cq));
    send_ipv4(sender, 1);
    EXPECT_EQ(wait(cq).wr_id, 1U);

    EXPECT_EQ(move(wq, ipc::WqState::kError), 0);
    const Entry flushed = wait(cq);
    EXPECT_EQ(flushed.wr_id, 2U);
    EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(move(wq, ipc::WqState::kReady), EINVAL);
    EXPECT_EQ(move(wq, static_cast<ipc::WqState>(3)), EINVAL);
    EXPECT_EQ(move(wq, ipc::WqState::kReset), 0);
    wq.receives = 0;
    EXPECT_EQ(move(wq, ipc::WqState::kReady), 0);
    post_receive(wq, 3, buffer_ + 1024, 1000, key_);
    send_ipv4(sender, 1);
    EXPECT_EQ(wait(cq).wr_id, 3U);
}

TEST_F(ReceiveScalingTest, a_work_queue_whose_completions_are_lost_tells_so_itself) {
    TestCq tiny = make_cq(1), send_cq = make_cq(16);
    TestQp sender = make_raw(send_cq), wq = make_wq(tiny, 0xD7);
    ASSERT_EQ(move(wq, ipc::WqState::kReady), 0);
    std::uint32_t table = 0, flow = 0;
    ASSERT_EQ(make_table({wq}, table), 0);
    const TestQp qp = make_hash_qp(table);
    ASSERT_EQ(context_->create_flow(*client_, rule_for(qp, mac(0)), flow), 0);
    for (std::uint32_t i = 0; i < tiny.reply.entries + 1; ++i) {
        post_receive(wq, i, buffer_ + 1024, 1000, key_);
        send_ipv4(sender, 1);
        ASSERT_EQ(wait(send_cq).status, 0);
    }
    turn();
    const std::vector<ipc::AsyncEvent> events = take_events();
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].type, IBV_EVENT_CQ_ERR);
    EXPECT_EQ(events[1].type, IBV_EVENT_WQ_FATAL);
    EXPECT_EQ(events[1].element, 0xD7U);
    ASSERT_EQ(context_->destroy_flow(flow), 0);
    ipc::EventsReply owed{};
    ASSERT_EQ(context_->destroy_qp(qp.reply.handle, owed), 0);
    ASSERT_EQ(context_->destroy_rwq_table(table), 0);
    ASSERT_EQ(context_->destroy_wq(wq.reply.handle, owed), 0);
    EXPECT_EQ(owed.async_events, 1U);
}

TEST_F(ReceiveScalingTest, what_makes_no_sense_is_refused) {
    const TestCq cq = make_cq(16);
    const TestQp wq = make_wq(cq);
    ipc::QpReply reply{};
    EXPECT_EQ(context_->create_wq(*client_, {0, 1000, cq.reply.handle, 16, 1}, reply), EINVAL);
    EXPECT_EQ(context_->create_wq(*client_, {0, pd_, 1000, 16, 1}, reply), EINVAL);
    EXPECT_EQ(context_->create_wq(*client_, {0, pd_, cq.reply.handle, 0, 1}, reply), EINVAL);
    EXPECT_EQ(context_->create_wq(*client_, {0, pd_, cq.reply.handle, Limits::kMaxQpWr + 1, 1}, reply),
              EINVAL);
    EXPECT_EQ(context_->create_wq(*client_, {0, pd_, cq.reply.handle, 16, Limits::kMaxSge + 1}, reply),
              EINVAL);
    EXPECT_EQ(context_->modify_wq({1000, 1}), ENOENT);

    std::uint32_t table = 0;
    EXPECT_EQ(make_table({}, table), EINVAL);
    EXPECT_EQ(make_table({wq, wq, wq}, table), EINVAL) << "no power of two";
    TestQp nobody;
    nobody.reply.handle = 1000;
    EXPECT_EQ(make_table({wq, nobody}, table), EINVAL);
    ipc::CreateRwqTableRequest large{};
    large.entries = 2 * ipc::kMaxRwqTableEntries;
    EXPECT_EQ(context_->create_rwq_table(*client_, large, table), EINVAL);

    ASSERT_EQ(make_table({wq}, table), 0);
    ipc::CreateHashQpRequest request = hash_request(table);
    request.fields |= ipc::kHashSourceIpv6;
    EXPECT_EQ(context_->create_hash_qp(*client_, request, reply), EINVAL);
    request = hash_request(1000);
    EXPECT_EQ(context_->create_hash_qp(*client_, request, reply), EINVAL);
    const TestQp qp = make_hash_qp(table);
    ipc::QpAttributes attributes{};
    attributes.port = 1;
    EXPECT_EQ(modify(qp, IBV_QPS_INIT, IBV_QP_PORT, attributes), EOPNOTSUPP);
}

TEST_F(ReceiveScalingTest, there_are_as_many_as_the_limits_say) {
    const TestCq cq = make_cq(16);
    ipc::QpReply reply{};
    int error = 0;
    std::uint32_t wqs = 0, tables = 0, handle = 0;
    while ((error = context_->create_wq(*client_, {0, pd_, cq.reply.handle, 1, 1}, reply)) == 0) ++wqs;
    EXPECT_EQ(error, ENOMEM);
    EXPECT_EQ(wqs, Limits::kMaxWq);
    TestQp wq;
    wq.reply = reply;
    while ((error = make_table({wq}, handle)) == 0) ++tables;
    EXPECT_EQ(error, ENOMEM);
    EXPECT_EQ(tables, Limits::kMaxRwqTables);
    const std::vector<TestQp> most(ipc::kMaxRwqTableEntries, wq);
    ASSERT_EQ(context_->destroy_rwq_table(handle), 0);
    EXPECT_EQ(make_table(most, handle), 0);
}

TEST_F(ReceiveScalingTest, only_ethernet_devices_have_it) {
    const ipc::DeviceLimits ethernet = adapter_.devices()[0]->limits();
    EXPECT_EQ(ethernet.max_wq, Limits::kMaxWq);
    EXPECT_EQ(ethernet.max_rwq_tables, Limits::kMaxRwqTables);
    EXPECT_EQ(ethernet.max_rwq_table_entries, ipc::kMaxRwqTableEntries);
    EXPECT_EQ(ethernet.rx_hash_fields, ipc::kAllHashFields);
    const ipc::DeviceLimits infiniband = adapter_.devices()[2]->limits();
    EXPECT_EQ(infiniband.max_wq + infiniband.max_rwq_tables + infiniband.max_rwq_table_entries +
                  infiniband.rx_hash_fields,
              0U);
    Context other(adapter_, *adapter_.devices()[2], 2);
    ipc::QpReply reply{};
    EXPECT_EQ(other.create_wq(*client_, {}, reply), EOPNOTSUPP);
}

}  // namespace
}  // namespace uib::verbs

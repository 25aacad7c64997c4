// Duplicate requests at a reliable responder (IBA 9.7.5.1.4, Table 44): answered, never executed again, never
// refused, and without effect on the expected PSN and the MSN.
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr std::uint64_t kBase = Station::kBase;

class Duplicates : public Responder {
  protected:
    void TearDown() override {
        if (expected_) {
            EXPECT_EQ(peer.machine().qp->receive_psn(), Wire::psn(*expected_));
        }
        EXPECT_EQ(peer.state(), QpState::kRts);
        Responder::TearDown();
    }
    /// The expected PSN at the end, whatever duplicates come.
    void expects_psn(int psn) { expected_ = psn; }
    memory::Region* second_region() {
        memory::RegionInit init = peer.machine().region->init();
        return peer.machine().keys().add_region(std::move(init));
    }

  private:
    std::optional<int> expected_;
};

TEST_P(Duplicates, C9_105_a_duplicate_send_or_write_is_acknowledged_and_not_executed) {
    ROWS("C9-78", "C9-102", "C9-103", "C9-105", "C9-123");
    XRC_ROWS("o9-44");
    connect();
    expects_psn(4);
    peer.posts_receive(0, 0, 1000);
    peer.posts_receive(1, 0, 1000);
    peer.sends(send_first(0).bytes(2));
    peer.sends(send_last(1, 10).bytes(2, 256).asks_ack());
    peer.expects(ack(1).msn(1));
    peer.receives(0);
    peer.sends(write_only(2, peer.rkey(), kBase + 2000, 10).bytes(3).asks_ack());
    peer.sends(write_only(3, peer.rkey(), kBase + 3000, 10).bytes(3).asks_ack());
    peer.expects(ack(2).msn(2));
    peer.expects(ack(3).msn(3));
    peer.machine().fill(0, 4000, 9);
    peer.sends(send_first(0).bytes(2));
    peer.expects(ack(3).msn(3));
    peer.sends(send_last(1, 10).bytes(2, 256).asks_ack());
    peer.expects(ack(3).msn(3));
    peer.sends(write_only(2, peer.rkey(), kBase + 2000, 10).bytes(3).asks_ack());
    peer.expects(ack(3).msn(3));
    peer.receives_nothing();
    EXPECT_TRUE(peer.machine().holds(0, 4000, 9));
}

TEST_P(Duplicates, C9_106_a_duplicate_at_fault_is_not_refused) {
    ROWS("C9-106", "C9-103", "C9-115");
    connect();
    expects_psn(2);
    peer.sends(write_only(0, peer.rkey(), kBase, 10));
    peer.sends(write_only(1, peer.rkey(), kBase, 10).asks_ack());
    peer.expects(ack(1).msn(2));
    // Whatever is wrong with it: it is not executed, so nobody looks.
    peer.sends(write_only(0, 0xDEAD, kBase, 10));
    peer.expects(ack(1).msn(2));
    peer.sends(send_only(0, 300));
    peer.expects(ack(1).msn(2));
    peer.raises_nothing();
}

TEST_P(Duplicates, C9_107_a_duplicate_read_is_read_again) {
    ROWS("C9-107", "C9-102", "C9-103", "C9-78", "C9-96");
    XRC_ROWS("o9-44");
    connect();
    expects_psn(3);
    peer.machine().fill(0, 700, 1);
    peer.sends(read(0, peer.rkey(), kBase, 700));
    EXPECT_EQ(peer.hears_all().size(), 3U);
    peer.machine().fill(0, 700, 2);
    peer.sends(read(0, peer.rkey(), kBase, 700));
    peer.expects(response_first(0).bytes(2, 0));
    peer.expects(response_middle(1).bytes(2, 256));
    peer.expects(response_last(2, 188).bytes(2, 512).msn(1));
}

TEST_P(Duplicates, C9_107_a_duplicate_read_may_ask_for_a_part) {
    ROWS("C9-107");
    connect();
    expects_psn(4);
    peer.machine().fill(0, 1000, 1);
    peer.sends(read(0, peer.rkey(), kBase, 1000));
    EXPECT_EQ(peer.hears_all().size(), 4U);
    peer.sends(read(2, peer.rkey(), kBase + 512, 488));  // the tail
    peer.expects(response_first(2).bytes(1, 512));
    peer.expects(response_last(3, 232).bytes(1, 768));
    peer.sends(read(1, peer.rkey(), kBase + 256, 256));  // one packet of it
    peer.expects(response_only(1, 256).bytes(1, 256));
}

// What does not lie in the original, by PSN or by bytes, may be dropped (9.7.5.1.4), and is.
TEST_P(Duplicates, C9_108_a_duplicate_read_that_is_none_is_dropped) {
    ROWS("C9-108", "C9-103");
    connect();
    expects_psn(3);
    peer.sends(read(0, peer.rkey(), kBase, 700));
    EXPECT_EQ(peer.hears_all().size(), 3U);
    peer.sends(read(0, peer.rkey(), kBase, 701));
    peer.sends(read(0, peer.rkey(), kBase + 1, 699));
    peer.sends(read(1, peer.rkey(), kBase, 444));
    peer.sends(read(1, peer.rkey(), kBase + 256, 445));
    peer.sends(read(2, peer.rkey(), kBase + 512, 700));
    peer.sends(read(0, peer.rkey(), kBase, 0));
    peer.sends(read(-1, peer.rkey(), kBase, 10));
    peer.sends(read(0, 0xDEAD, kBase, 700));
    peer.expects_nothing();
    peer.raises_nothing();
}

TEST_P(Duplicates, C9_107_a_duplicate_of_nothing_is_answered_by_nothing) {
    ROWS("C9-107", "C9-102", "C9-105", "C9-103");
    connect();
    expects_psn(3);
    peer.posts_receive(0, 0, 0);
    for (int i = 0; i < 2; ++i) {
        peer.sends(read(0, 0xDEAD, 0, 0));
        peer.expects(response_only(0, 0));
        if (i > 0) peer.sends(read(0, peer.rkey(), kBase, 1));  // not the one that was asked for
        peer.sends(write_only(1, 0xDEAD, 0, 0).asks_ack());
        peer.expects(ack(i == 0 ? 1 : 2));
        peer.sends(send_only(2, 0).asks_ack());
        peer.expects(ack(2).msn(3));
    }
    EXPECT_EQ(peer.receives(0).byte_len, 0U);
}

TEST_P(Duplicates, C9_108_a_duplicate_read_of_a_dead_key_is_dropped) {
    ROWS("C9-108", "C9-103", "C9-115", "C9-223.1.1");
    connect();
    expects_psn(3);
    memory::Region* region = second_region();
    const std::uint32_t key = region->key();
    peer.sends(read(0, key, kBase, 700));
    EXPECT_EQ(peer.hears_all().size(), 3U);
    peer.machine().keys().remove_region(region);
    peer.sends(read(0, key, kBase, 700));
    peer.expects_nothing();
    peer.raises_nothing();
    peer.sends(write_only(8, peer.rkey(), kBase, 10));  // waiting after a NAK: the same
    peer.expects(nak(transport::kNakSequence, 3));
    peer.sends(read(0, key, kBase, 700));
    peer.expects_nothing();
}

TEST_P(Duplicates, C9_109_a_duplicate_read_that_fails_on_its_way_just_ends) {
    ROWS("C9-109", "C9-103", "C9-223.1.1");
    connect();
    expects_psn(3);
    memory::Region* region = second_region();
    const std::uint32_t key = region->key();
    peer.sends(read(0, key, kBase, 700));
    EXPECT_EQ(peer.hears_all().size(), 3U);
    peer.hold();
    peer.sends(read(0, key, kBase, 700));
    peer.step(1);
    peer.expects(response_first(0));
    peer.machine().keys().remove_region(region);
    peer.release();
    peer.expects_nothing();
    peer.raises_nothing();
}

TEST_P(Duplicates, C9_110_an_earlier_duplicate_goes_first) {
    ROWS("C9-110");
    connect();
    expects_psn(6);
    peer.sends(read(0, peer.rkey(), kBase, 700));
    peer.sends(read(3, peer.rkey(), kBase, 700));
    EXPECT_EQ(peer.hears_all().size(), 6U);
    peer.hold();
    peer.sends(read(3, peer.rkey(), kBase, 700));
    peer.step(1);
    peer.expects(response_first(3));
    peer.sends(read(0, peer.rkey(), kBase, 700));
    peer.release();
    peer.expects(response_first(0));
    peer.expects(response_middle(1));
    peer.expects(response_last(2, 188));
    peer.forgets();  // the interrupted one may be resumed or not
}

TEST_P(Duplicates, C9_104_duplicate_reads_and_atomics_are_answered_before_a_later_send) {
    ROWS("C9-104", "C9-102", "C9-105");
    connect();
    expects_psn(4);
    peer.posts_receive(0, 0, 100);
    peer.sends(read(0, peer.rkey(), kBase, 300));
    peer.sends(fetch_add(2, peer.rkey(), kBase, 1));
    peer.sends(send_only(3, 10).asks_ack());
    peer.receives(0);
    EXPECT_EQ(peer.hears_all().size(), 4U);
    peer.hold();
    peer.sends(read(0, peer.rkey(), kBase, 300));
    peer.sends(fetch_add(2, peer.rkey(), kBase, 1));
    peer.sends(send_only(3, 10).asks_ack());
    peer.release();
    peer.expects(response_first(0));
    peer.expects(response_last(1, 44));
    peer.expects(Frame(Op::kAtomicAcknowledge, 2));
    peer.expects(ack(3).msn(3));
}

TEST_P(Duplicates, o9_66_a_duplicate_atomic_gets_the_saved_result) {
    ROWS("o9-66", "C9-103", "C9-102", "o9-58");
    connect();
    expects_psn(2);
    *reinterpret_cast<std::uint64_t*>(peer.machine().at(0)) = 100;
    peer.sends(fetch_add(0, peer.rkey(), kBase, 5));
    peer.expects(atomic_ack(0, 100).msn(1));
    peer.sends(compare_swap(1, peer.rkey(), kBase, 105, 7));
    peer.expects(atomic_ack(1, 105).msn(2));
    for (int i = 0; i < 3; ++i) {
        peer.sends(fetch_add(0, peer.rkey(), kBase, 5));
        peer.expects(atomic_ack(0, 100));
        peer.sends(compare_swap(1, peer.rkey(), kBase, 105, 7));
        peer.expects(atomic_ack(1, 105));
    }
    EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(peer.machine().at(0)), 7U);
}

TEST_P(Duplicates, o9_66_the_key_of_a_duplicate_atomic_does_not_count) {
    ROWS("o9-66");
    connect();
    expects_psn(1);
    memory::Region* region = second_region();
    const std::uint32_t key = region->key();
    peer.sends(fetch_add(0, key, kBase, 5));
    peer.expects(atomic_ack(0, 0));
    peer.machine().keys().remove_region(region);
    peer.sends(fetch_add(0, key, kBase, 5));
    peer.expects(atomic_ack(0, 0));
}

TEST_P(Duplicates, o9_67_an_atomic_that_is_not_saved_any_more_is_dropped) {
    ROWS("o9-67", "o9-68", "C9-103", "C9-223.1.1");
    peer.parameters().max_dest_rd_atomic = 2;
    connect();
    expects_psn(4);
    peer.sends(write_only(0, peer.rkey(), kBase + 64, 10));
    for (int psn = 1; psn < 4; ++psn) peer.sends(fetch_add(psn, peer.rkey(), kBase, 1));
    EXPECT_EQ(peer.hears_all().size(), 3U);
    peer.sends(fetch_add(1, peer.rkey(), kBase, 1));  // two are saved, this was the third
    peer.sends(fetch_add(0, peer.rkey(), kBase, 1));  // never was one
    peer.sends(compare_swap(2, peer.rkey(), kBase, 1, 1));
    peer.expects_nothing();
    peer.raises_nothing();
    peer.sends(fetch_add(2, peer.rkey(), kBase, 1));
    peer.expects(atomic_ack(2, 1));
}

INSTANTIATE_TEST_SUITE_P(On, Duplicates,
                         ::testing::Values(transport::Service::kRc, transport::Service::kXrcTarget),
                         service_name);

}  // namespace
}  // namespace uib::conformance

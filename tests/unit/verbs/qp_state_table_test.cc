// The QP state table against literal expectations (IBA table of Modify QP; ib_core's table).
#include "engine/verbs/state_table/qp_state_table.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

namespace uib::verbs {
namespace {

constexpr ibv_qp_type kServices[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV};
constexpr int kAllBits[] = {IBV_QP_CUR_STATE,
                            IBV_QP_EN_SQD_ASYNC_NOTIFY,
                            IBV_QP_ACCESS_FLAGS,
                            IBV_QP_PKEY_INDEX,
                            IBV_QP_PORT,
                            IBV_QP_QKEY,
                            IBV_QP_AV,
                            IBV_QP_PATH_MTU,
                            IBV_QP_TIMEOUT,
                            IBV_QP_RETRY_CNT,
                            IBV_QP_RNR_RETRY,
                            IBV_QP_RQ_PSN,
                            IBV_QP_MAX_QP_RD_ATOMIC,
                            IBV_QP_ALT_PATH,
                            IBV_QP_MIN_RNR_TIMER,
                            IBV_QP_SQ_PSN,
                            IBV_QP_MAX_DEST_RD_ATOMIC,
                            IBV_QP_PATH_MIG_STATE,
                            IBV_QP_CAP,
                            IBV_QP_DEST_QPN,
                            1 << 21,
                            1 << 22,
                            1 << 23,
                            1 << 24,
                            IBV_QP_RATE_LIMIT,
                            1 << 26};

/// One transition: the attributes it must have and those it may have, all others are refused.
void expect_transition(ibv_qp_type service, ibv_qp_state from, ibv_qp_state to, std::vector<int> required,
                       std::vector<int> optional) {
    SCOPED_TRACE(testing::Message() << "service " << service << ", " << from << " to " << to);
    int needed = IBV_QP_STATE;
    for (const int bit : required) needed |= bit;
    EXPECT_EQ(check_transition(service, from, to, needed), 0);
    for (const int bit : required) {
        EXPECT_EQ(check_transition(service, from, to, needed & ~bit), EINVAL) << "without " << bit;
    }
    int most = needed;
    for (const int bit : optional) {
        most |= bit;
        EXPECT_EQ(check_transition(service, from, to, needed | bit), 0) << "with " << bit;
    }
    EXPECT_EQ(check_transition(service, from, to, most), 0);
    for (const int bit : kAllBits) {
        if ((most & bit) != 0) continue;
        EXPECT_EQ(check_transition(service, from, to, needed | bit), EINVAL) << "with " << bit;
    }
    const int stateless = needed & ~IBV_QP_STATE;
    EXPECT_EQ(check_transition(service, from, to, stateless), from == to ? 0 : EINVAL);
}

TEST(QpStateTable, rc_from_reset_to_ready_to_send) {
    expect_transition(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT,
                      {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS}, {});
    expect_transition(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, {},
                      {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS});
    expect_transition(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
                      {IBV_QP_AV, IBV_QP_PATH_MTU, IBV_QP_DEST_QPN, IBV_QP_RQ_PSN, IBV_QP_MAX_DEST_RD_ATOMIC,
                       IBV_QP_MIN_RNR_TIMER},
                      {IBV_QP_ALT_PATH, IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX});
    expect_transition(
        IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
        {IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_SQ_PSN, IBV_QP_MAX_QP_RD_ATOMIC},
        {IBV_QP_CUR_STATE, IBV_QP_ALT_PATH, IBV_QP_ACCESS_FLAGS, IBV_QP_MIN_RNR_TIMER,
         IBV_QP_PATH_MIG_STATE});
}

TEST(QpStateTable, rc_while_it_runs) {
    expect_transition(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, {},
                      {IBV_QP_CUR_STATE, IBV_QP_ACCESS_FLAGS, IBV_QP_ALT_PATH, IBV_QP_PATH_MIG_STATE,
                       IBV_QP_MIN_RNR_TIMER});
    expect_transition(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, {}, {IBV_QP_EN_SQD_ASYNC_NOTIFY});
    expect_transition(IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_RTS, {},
                      {IBV_QP_CUR_STATE, IBV_QP_ACCESS_FLAGS, IBV_QP_ALT_PATH, IBV_QP_PATH_MIG_STATE,
                       IBV_QP_MIN_RNR_TIMER});
    expect_transition(IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_SQD, {},
                      {IBV_QP_PORT, IBV_QP_AV, IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY,
                       IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_ALT_PATH,
                       IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_MIN_RNR_TIMER, IBV_QP_PATH_MIG_STATE});
}

TEST(QpStateTable, uc) {
    expect_transition(IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT,
                      {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS}, {});
    expect_transition(IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_INIT, {},
                      {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS});
    expect_transition(IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR,
                      {IBV_QP_AV, IBV_QP_PATH_MTU, IBV_QP_DEST_QPN, IBV_QP_RQ_PSN},
                      {IBV_QP_ALT_PATH, IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX});
    expect_transition(IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, {IBV_QP_SQ_PSN},
                      {IBV_QP_CUR_STATE, IBV_QP_ALT_PATH, IBV_QP_ACCESS_FLAGS, IBV_QP_PATH_MIG_STATE});
    expect_transition(IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_RTS, {},
                      {IBV_QP_CUR_STATE, IBV_QP_ALT_PATH, IBV_QP_ACCESS_FLAGS, IBV_QP_PATH_MIG_STATE});
    expect_transition(IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_SQD, {}, {IBV_QP_EN_SQD_ASYNC_NOTIFY});
    expect_transition(IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_RTS, {},
                      {IBV_QP_CUR_STATE, IBV_QP_ALT_PATH, IBV_QP_ACCESS_FLAGS, IBV_QP_PATH_MIG_STATE});
    expect_transition(
        IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_SQD, {},
        {IBV_QP_AV, IBV_QP_ALT_PATH, IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_PATH_MIG_STATE});
    expect_transition(IBV_QPT_UC, IBV_QPS_SQE, IBV_QPS_RTS, {}, {IBV_QP_CUR_STATE, IBV_QP_ACCESS_FLAGS});
}

TEST(QpStateTable, xrc_initiator) {
    const std::vector<int> live = {IBV_QP_CUR_STATE, IBV_QP_ALT_PATH, IBV_QP_ACCESS_FLAGS,
                                   IBV_QP_PATH_MIG_STATE};
    expect_transition(IBV_QPT_XRC_SEND, IBV_QPS_RESET, IBV_QPS_INIT,
                      {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS}, {});
    expect_transition(IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_INIT, {},
                      {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS});
    expect_transition(IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_RTR,
                      {IBV_QP_AV, IBV_QP_PATH_MTU, IBV_QP_DEST_QPN, IBV_QP_RQ_PSN},
                      {IBV_QP_ALT_PATH, IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX});
    expect_transition(
        IBV_QPT_XRC_SEND, IBV_QPS_RTR, IBV_QPS_RTS,
        {IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_SQ_PSN, IBV_QP_MAX_QP_RD_ATOMIC}, live);
    expect_transition(IBV_QPT_XRC_SEND, IBV_QPS_RTS, IBV_QPS_RTS, {}, live);
    expect_transition(IBV_QPT_XRC_SEND, IBV_QPS_RTS, IBV_QPS_SQD, {}, {IBV_QP_EN_SQD_ASYNC_NOTIFY});
    expect_transition(IBV_QPT_XRC_SEND, IBV_QPS_SQD, IBV_QPS_RTS, {}, live);
    expect_transition(
        IBV_QPT_XRC_SEND, IBV_QPS_SQD, IBV_QPS_SQD, {},
        {IBV_QP_PORT, IBV_QP_AV, IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_MAX_QP_RD_ATOMIC,
         IBV_QP_ALT_PATH, IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_PATH_MIG_STATE});
}

TEST(QpStateTable, xrc_target) {
    const std::vector<int> live = {IBV_QP_CUR_STATE, IBV_QP_ALT_PATH, IBV_QP_ACCESS_FLAGS,
                                   IBV_QP_MIN_RNR_TIMER, IBV_QP_PATH_MIG_STATE};
    expect_transition(IBV_QPT_XRC_RECV, IBV_QPS_RESET, IBV_QPS_INIT,
                      {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS}, {});
    expect_transition(IBV_QPT_XRC_RECV, IBV_QPS_INIT, IBV_QPS_INIT, {},
                      {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS});
    expect_transition(IBV_QPT_XRC_RECV, IBV_QPS_INIT, IBV_QPS_RTR,
                      {IBV_QP_AV, IBV_QP_PATH_MTU, IBV_QP_DEST_QPN, IBV_QP_RQ_PSN, IBV_QP_MAX_DEST_RD_ATOMIC,
                       IBV_QP_MIN_RNR_TIMER},
                      {IBV_QP_ALT_PATH, IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX});
    expect_transition(IBV_QPT_XRC_RECV, IBV_QPS_RTR, IBV_QPS_RTS, {IBV_QP_TIMEOUT, IBV_QP_SQ_PSN}, live);
    expect_transition(IBV_QPT_XRC_RECV, IBV_QPS_RTS, IBV_QPS_RTS, {}, live);
    expect_transition(IBV_QPT_XRC_RECV, IBV_QPS_RTS, IBV_QPS_SQD, {}, {IBV_QP_EN_SQD_ASYNC_NOTIFY});
    expect_transition(IBV_QPT_XRC_RECV, IBV_QPS_SQD, IBV_QPS_RTS, {}, live);
    expect_transition(IBV_QPT_XRC_RECV, IBV_QPS_SQD, IBV_QPS_SQD, {},
                      {IBV_QP_PORT, IBV_QP_AV, IBV_QP_TIMEOUT, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_ALT_PATH,
                       IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_MIN_RNR_TIMER, IBV_QP_PATH_MIG_STATE});
}

TEST(QpStateTable, an_xrc_qp_leaves_the_other_halfs_attributes_unread) {
    EXPECT_EQ(relevant_attributes(IBV_QPT_XRC_SEND, IBV_QP_STATE | IBV_QP_AV | IBV_QP_MAX_DEST_RD_ATOMIC |
                                                        IBV_QP_MIN_RNR_TIMER),
              IBV_QP_STATE | IBV_QP_AV);
    EXPECT_EQ(relevant_attributes(IBV_QPT_XRC_RECV, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                                        IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              IBV_QP_TIMEOUT | IBV_QP_MIN_RNR_TIMER);
    EXPECT_EQ(relevant_attributes(IBV_QPT_RC, IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER),
              IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER);
}

TEST(QpStateTable, ud) {
    expect_transition(IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_QKEY},
                      {});
    expect_transition(IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, {},
                      {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_QKEY});
    expect_transition(IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, {}, {IBV_QP_PKEY_INDEX, IBV_QP_QKEY});
    expect_transition(IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, {IBV_QP_SQ_PSN}, {IBV_QP_CUR_STATE, IBV_QP_QKEY});
    expect_transition(IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS, {}, {IBV_QP_CUR_STATE, IBV_QP_QKEY});
    expect_transition(IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_SQD, {}, {IBV_QP_EN_SQD_ASYNC_NOTIFY});
    expect_transition(IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_RTS, {}, {IBV_QP_CUR_STATE, IBV_QP_QKEY});
    expect_transition(IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_SQD, {}, {IBV_QP_PKEY_INDEX, IBV_QP_QKEY});
    expect_transition(IBV_QPT_UD, IBV_QPS_SQE, IBV_QPS_RTS, {}, {IBV_QP_CUR_STATE, IBV_QP_QKEY});
}

TEST(QpStateTable, raw_packet) {
    expect_transition(IBV_QPT_RAW_PACKET, IBV_QPS_RESET, IBV_QPS_INIT, {IBV_QP_PORT}, {});
    expect_transition(IBV_QPT_RAW_PACKET, IBV_QPS_INIT, IBV_QPS_INIT, {}, {IBV_QP_PORT});
    expect_transition(IBV_QPT_RAW_PACKET, IBV_QPS_INIT, IBV_QPS_RTR, {}, {});
    expect_transition(IBV_QPT_RAW_PACKET, IBV_QPS_RTR, IBV_QPS_RTS, {}, {});
    expect_transition(IBV_QPT_RAW_PACKET, IBV_QPS_RTS, IBV_QPS_RTS, {}, {});
    expect_transition(IBV_QPT_RAW_PACKET, IBV_QPS_RTS, IBV_QPS_SQD, {}, {IBV_QP_EN_SQD_ASYNC_NOTIFY});
    expect_transition(IBV_QPT_RAW_PACKET, IBV_QPS_SQD, IBV_QPS_RTS, {}, {});
    expect_transition(IBV_QPT_RAW_PACKET, IBV_QPS_SQE, IBV_QPS_RTS, {}, {IBV_QP_CUR_STATE});
    EXPECT_EQ(check_transition(IBV_QPT_RAW_PACKET, IBV_QPS_ERR, IBV_QPS_RTS, IBV_QP_STATE), EINVAL);
    EXPECT_EQ(check_transition(IBV_QPT_RAW_PACKET, IBV_QPS_INIT, IBV_QPS_RTS, IBV_QP_STATE), EINVAL);
}

TEST(QpStateTable, every_state_can_be_reset_and_every_state_but_reset_can_fail) {
    for (const ibv_qp_type service : kServices) {
        for (int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; ++from) {
            expect_transition(service, static_cast<ibv_qp_state>(from), IBV_QPS_RESET, {}, {});
            if (from != IBV_QPS_RESET) {
                expect_transition(service, static_cast<ibv_qp_state>(from), IBV_QPS_ERR, {}, {});
            }
        }
        EXPECT_EQ(check_transition(service, IBV_QPS_RESET, IBV_QPS_ERR, IBV_QP_STATE), EINVAL);
    }
}

/// Which cells of the table exist (R reset, I init, r RTR, s RTS, D SQD, Q SQE, E error), with whatever mask.
TEST(QpStateTable, no_other_transition_exists) {
    struct Cell {
        ibv_qp_state from, to;
    };
    const Cell possible[] = {
        {IBV_QPS_RESET, IBV_QPS_INIT}, {IBV_QPS_INIT, IBV_QPS_INIT}, {IBV_QPS_INIT, IBV_QPS_RTR},
        {IBV_QPS_RTR, IBV_QPS_RTS},    {IBV_QPS_RTS, IBV_QPS_RTS},   {IBV_QPS_RTS, IBV_QPS_SQD},
        {IBV_QPS_SQD, IBV_QPS_RTS},    {IBV_QPS_SQD, IBV_QPS_SQD},   {IBV_QPS_SQE, IBV_QPS_RTS}};
    const auto exists = [&](ibv_qp_type service, int from, int to) {
        if (to == IBV_QPS_RESET) return true;
        if (to == IBV_QPS_ERR) return from != IBV_QPS_RESET;
        // The reliable services have no send queue error state.
        if (service != IBV_QPT_UC && service != IBV_QPT_UD && from == IBV_QPS_SQE) return false;
        for (const Cell& cell : possible) {
            if (cell.from == from && cell.to == to) return true;
        }
        return false;
    };
    for (const ibv_qp_type service : kServices) {
        for (int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; ++from) {
            for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; ++to) {
                bool accepted = false;
                // All combinations of the 21 public bits would be 2 million a cell; the required sets are
                // few.
                for (const int set : {0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                                      IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
                                      IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
                                      IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                                      IBV_QP_SQ_PSN | 0, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT,
                                      IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                          IBV_QP_MAX_QP_RD_ATOMIC}) {
                    accepted =
                        accepted || check_transition(service, static_cast<ibv_qp_state>(from),
                                                     static_cast<ibv_qp_state>(to), set | IBV_QP_STATE) == 0;
                }
                EXPECT_EQ(accepted, exists(service, from, to)) << service << ": " << from << " to " << to;
            }
        }
    }
}

TEST(QpStateTable, states_and_services_that_do_not_exist) {
    EXPECT_EQ(check_transition(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_UNKNOWN, IBV_QP_STATE), EINVAL);
    EXPECT_EQ(check_transition(IBV_QPT_RC, IBV_QPS_UNKNOWN, IBV_QPS_RESET, IBV_QP_STATE), EINVAL);
    EXPECT_EQ(check_transition(IBV_QPT_DRIVER, IBV_QPS_INIT, IBV_QPS_RESET, IBV_QP_STATE), EINVAL);
    EXPECT_EQ(check_transition(IBV_QPT_DRIVER, IBV_QPS_INIT, IBV_QPS_RESET, IBV_QP_STATE), EINVAL);
    EXPECT_EQ(check_values(IBV_QPT_DRIVER, ipc::QpAttributes{}, 0, ValueLimits{}), EINVAL);
}

class QpValues : public testing::Test {
  protected:
    QpValues() {
        limits_.ports = 2;
        limits_.pkey_table_length = 4;
        limits_.gid_table_length = 3;
        limits_.active_mtu = IBV_MTU_2048;
        limits_.max_rd_atomic = 16;
        limits_.max_dest_rd_atomic = 8;
        attributes_.path.port = 1;
        attributes_.path.dlid = 5;
        attributes_.alternate_path = attributes_.path;
        attributes_.alternate_port = 1;
    }
    int check(int mask) const { return check_values(IBV_QPT_RC, attributes_, mask, limits_); }
    /// `field` takes `good` values and refuses `bad` ones; without its bit nobody looks at it.
    template <typename Field>
    void expect(int mask, Field& field, std::vector<unsigned> good, std::vector<unsigned> bad) {
        const Field before = field;
        for (const unsigned value : good) {
            field = static_cast<Field>(value);
            EXPECT_EQ(check(mask), 0) << value;
        }
        for (const unsigned value : bad) {
            field = static_cast<Field>(value);
            EXPECT_EQ(check(mask), EINVAL) << value;
            EXPECT_EQ(check(0), 0) << value;
        }
        field = before;
    }
    ipc::QpAttributes attributes_{};
    ValueLimits limits_;
};

TEST_F(QpValues, ports_and_tables) {
    expect(IBV_QP_PORT, attributes_.port, {1, 2}, {0, 3, 255});
    expect(IBV_QP_PKEY_INDEX, attributes_.pkey_index, {0, 3}, {4, 65535});
    expect(IBV_QP_AV, attributes_.path.port, {1, 2}, {0, 3});
    expect(IBV_QP_ALT_PATH, attributes_.alternate_port, {1, 2}, {0, 3});
    expect(IBV_QP_ALT_PATH, attributes_.alternate_pkey_index, {0, 3}, {4});
    expect(IBV_QP_ALT_PATH, attributes_.alternate_path.port, {1, 2}, {0, 3});
}

TEST_F(QpValues, mtu_up_to_the_ports_own) {
    expect(IBV_QP_PATH_MTU, attributes_.path_mtu, {1, 2, 3, 4}, {0, 5, 6, 255});
    limits_.active_mtu = IBV_MTU_4096;
    expect(IBV_QP_PATH_MTU, attributes_.path_mtu, {5}, {6});
}

TEST_F(QpValues, timers_and_counters_fit_their_fields) {
    expect(IBV_QP_TIMEOUT, attributes_.timeout, {0, 14, 31}, {32, 255});
    expect(IBV_QP_MIN_RNR_TIMER, attributes_.min_rnr_timer, {0, 31}, {32});
    expect(IBV_QP_RETRY_CNT, attributes_.retry_count, {0, 7}, {8});
    expect(IBV_QP_RNR_RETRY, attributes_.rnr_retry, {0, 7}, {8});
    expect(IBV_QP_ALT_PATH, attributes_.alternate_timeout, {0, 31}, {32});
    expect(IBV_QP_DEST_QPN, attributes_.dest_qp_number, {0, 1, 0xFFFFFF}, {0x1000000, 0xFFFFFFFF});
    expect(IBV_QP_RQ_PSN, attributes_.rq_psn, {0, 0xFFFFFF, 0x1000000, 0xFFFFFFFF}, {});
    expect(IBV_QP_SQ_PSN, attributes_.sq_psn, {0, 0xFFFFFF, 0x1000000, 0xFFFFFFFF}, {});
    expect(IBV_QP_QKEY, attributes_.qkey, {0, 0x11111111, 0xFFFFFFFF}, {});
    expect(IBV_QP_PATH_MIG_STATE, attributes_.path_migration_state, {0, 1, 2}, {3});
}

TEST_F(QpValues, read_and_atomic_depth_up_to_the_devices) {
    expect(IBV_QP_MAX_QP_RD_ATOMIC, attributes_.max_rd_atomic, {0, 1, 16}, {17, 255});
    expect(IBV_QP_MAX_DEST_RD_ATOMIC, attributes_.max_dest_rd_atomic, {0, 1, 8}, {9, 255});
}

TEST_F(QpValues, paths) {
    expect(IBV_QP_AV, attributes_.path.dlid, {1, 0xBFFF}, {0, 0xC000, 0xFFFF});
    expect(IBV_QP_AV, attributes_.path.sl, {0, 15}, {16});
    expect(IBV_QP_AV, attributes_.path.static_rate, {0, IBV_RATE_10_GBPS, IBV_RATE_600_GBPS}, {1, 24, 255});
    expect(IBV_QP_AV, attributes_.path.sgid_index, {0, 200}, {});
    expect(IBV_QP_ALT_PATH, attributes_.alternate_path.dlid, {1, 0xBFFF}, {0, 0xC000});
    attributes_.path.is_global = 1;
    expect(IBV_QP_AV, attributes_.path.sgid_index, {0, 2}, {3, 255});
    expect(IBV_QP_AV, attributes_.path.dlid, {1}, {0});
    expect(IBV_QP_AV, attributes_.path.dgid[0], {0, 0xFE}, {0xFF});
    expect(IBV_QP_AV, attributes_.path.flow_label, {0, 0xFFFFF, 0x100000}, {});
}

TEST_F(QpValues, ethernet_paths_need_a_grh_and_no_lid) {
    limits_.ethernet = true;
    expect(IBV_QP_AV, attributes_.path.is_global, {1}, {0});
    attributes_.path.is_global = 1;
    expect(IBV_QP_AV, attributes_.path.dlid, {0, 5}, {});
    expect(IBV_QP_AV, attributes_.path.sgid_index, {2}, {3});
}

}  // namespace
}  // namespace uib::verbs

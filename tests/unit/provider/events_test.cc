#include "provider/events.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "engine/ipc/control_cq.h"

namespace uib::provider {
namespace {

bool is_readable(int fd) {
    // The pipe's own description must stay blocking.
    EXPECT_EQ(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    int bytes = 0;
    return ::ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

TEST(Events, purge_takes_one_elements_events_and_puts_the_others_back) {
    EventPipe pipe;
    ASSERT_TRUE(pipe.open());
    for (std::uint64_t element : {1, 2, 1, 3, 1})
        ASSERT_TRUE(write_event(pipe.write_end.get(), &element, sizeof element));
    EXPECT_EQ(purge_events(pipe.read_end.get(), pipe.write_end.get(), 8, 1), 3);
    std::uint64_t left[2] = {};
    ASSERT_EQ(::read(pipe.read_end.get(), left, sizeof left), static_cast<ssize_t>(sizeof left));
    EXPECT_EQ(left[0], 2U);
    EXPECT_EQ(left[1], 3U);
    EXPECT_FALSE(is_readable(pipe.read_end.get()));
}

TEST(Events, purge_of_asynchronous_events_minds_the_type) {
    EventPipe pipe;
    ASSERT_TRUE(pipe.open());
    // A port's number may equal no object's address, but an SRQ's event is no QP's.
    const ipc::AsyncEvent events[] = {{1, IBV_EVENT_PORT_ACTIVE, 0}, {1, IBV_EVENT_QP_FATAL, 0}};
    for (const auto& event : events) write_event(pipe.write_end.get(), &event, sizeof event);
    EXPECT_EQ(purge_events(pipe.read_end.get(), pipe.write_end.get(), 16, 1, is_qp_event), 1);
    ipc::AsyncEvent left{};
    ASSERT_EQ(::read(pipe.read_end.get(), &left, sizeof left), static_cast<ssize_t>(sizeof left));
    EXPECT_EQ(left.type, static_cast<std::uint32_t>(IBV_EVENT_PORT_ACTIVE));
}

TEST(Events, purge_of_many_keeps_all_others) {
    EventPipe pipe;
    ASSERT_TRUE(pipe.open());
    for (std::uint64_t i = 0; i < 2000; ++i) {
        const std::uint64_t element = i % 2;
        ASSERT_TRUE(write_event(pipe.write_end.get(), &element, sizeof element));
    }
    EXPECT_EQ(purge_events(pipe.read_end.get(), pipe.write_end.get(), 8, 0), 1000);
    EXPECT_EQ(purge_events(pipe.read_end.get(), pipe.write_end.get(), 8, 1), 1000);
    EXPECT_FALSE(is_readable(pipe.read_end.get()));
}

TEST(Events, what_is_owed) {
    EXPECT_EQ(owed_events(true, 5, 2, 1), 3U);
    EXPECT_EQ(owed_events(false, 0, 2, 1), 1U);
    EXPECT_EQ(owed_events(true, 5, -1, 1), 1U);
}

TEST(Events, waits_until_all_are_acknowledged) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    std::uint32_t acknowledged = 0;
    std::atomic<bool> done{false};
    std::thread waiter([&] {
        await_acknowledged(mutex, cond, acknowledged, 2);
        done = true;
    });
    for (int i = 0; i < 2; ++i) {
        EXPECT_FALSE(done);
        ::usleep(10'000);
        ::pthread_mutex_lock(&mutex);
        ++acknowledged;
        ::pthread_cond_signal(&cond);
        ::pthread_mutex_unlock(&mutex);
    }
    waiter.join();
    EXPECT_TRUE(done);
}

TEST(Events, every_type_belongs_to_one_kind) {
    for (std::uint32_t type = 0; type <= IBV_EVENT_WQ_FATAL; ++type)
        EXPECT_LE(is_qp_event(type) + is_cq_event(type) + is_srq_event(type), 1) << type;
    EXPECT_TRUE(is_qp_event(IBV_EVENT_QP_LAST_WQE_REACHED));
    EXPECT_TRUE(is_srq_event(IBV_EVENT_SRQ_LIMIT_REACHED));
    EXPECT_TRUE(is_cq_event(IBV_EVENT_CQ_ERR));
    EXPECT_FALSE(is_qp_event(IBV_EVENT_DEVICE_FATAL));
}

}  // namespace
}  // namespace uib::provider

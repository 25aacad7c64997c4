#include "engine/verbs/event_pipe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace uib::verbs {
namespace {

class EventPipeTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::signal(SIGPIPE, SIG_IGN);
        ASSERT_EQ(::pipe2(fds_, O_CLOEXEC | O_NONBLOCK), 0);
        // Small, so that it fills soon.
        ASSERT_GE(::fcntl(fds_[1], F_SETPIPE_SZ, 4096), 0);
    }
    void TearDown() override {
        if (fds_[0] >= 0) ::close(fds_[0]);
    }
    std::uint64_t read_one() {
        std::uint64_t value = 0;
        return ::read(fds_[0], &value, sizeof value) == static_cast<ssize_t>(sizeof value)
                   ? value
                   : ~std::uint64_t{0};
    }
    int fds_[2] = {-1, -1};
};

TEST_F(EventPipeTest, FullPipeKeepsEventsInOrder) {
    EventPipe pipe(ipc::UniqueFd(fds_[1]), sizeof(std::uint64_t));
    constexpr std::uint64_t kEvents = 2000;
    for (std::uint64_t i = 0; i < kEvents; ++i) ASSERT_TRUE(pipe.write(&i));
    ASSERT_TRUE(pipe.has_backlog());
    for (std::uint64_t i = 0; i < kEvents; ++i) {
        std::uint64_t got = read_one();
        if (got == ~std::uint64_t{0}) {
            pipe.retry();
            got = read_one();
        }
        ASSERT_EQ(got, i);
    }
    EXPECT_TRUE(pipe.retry());
}

TEST_F(EventPipeTest, PurgeTakesOneElementsEventsOutOfTheBacklog) {
    EventPipe pipe(ipc::UniqueFd(fds_[1]), sizeof(std::uint64_t));
    const std::uint64_t filler = 1, mine = 2;
    while (!pipe.has_backlog()) pipe.write(&filler);
    pipe.write(&mine);
    pipe.write(&filler);
    pipe.write(&mine);
    EXPECT_EQ(pipe.purge(mine), 2U);
    EXPECT_EQ(pipe.purge(mine), 0U);
}

TEST_F(EventPipeTest, ReaderGoneIsSeenAndWritesAreDropped) {
    EventPipe pipe(ipc::UniqueFd(fds_[1]), sizeof(std::uint64_t));
    EXPECT_FALSE(pipe.reader_gone());
    ::close(fds_[0]);
    fds_[0] = -1;
    EXPECT_TRUE(pipe.reader_gone());
    const std::uint64_t event = 1;
    EXPECT_FALSE(pipe.write(&event));
    EXPECT_EQ(pipe.dropped(), 1U);
}

}  // namespace
}  // namespace uib::verbs

// ProcessSpace against a child process of its own.
#include "engine/memory/process_space.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace uib::memory {
namespace {

constexpr std::size_t kPage = 4096;

/// What parent and child see at the same addresses, each its own copy.
struct Layout {
    char* data = nullptr;       ///< four private pages
    char* read_only = nullptr;  ///< one page
    char* unmapped = nullptr;   ///< behind the four pages
};

class ProcessSpaceTest : public testing::Test {
  protected:
    void SetUp() override {
        layout_.data = static_cast<char*>(
            mmap(nullptr, 5 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        layout_.unmapped = layout_.data + 4 * kPage;
        layout_.read_only =
            static_cast<char*>(mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        munmap(layout_.unmapped, kPage);
        std::memset(layout_.data, 'p', 4 * kPage);
        ASSERT_EQ(pipe(wake_), 0);
        ASSERT_EQ(pipe(answer_), 0);
        child_ = fork();
        ASSERT_GE(child_, 0);
        if (child_ == 0) run_child();
        close(wake_[0]);
        close(answer_[1]);
        char ready = 0;
        ASSERT_EQ(::read(answer_[0], &ready, 1), 1);
        space_ = std::make_unique<ProcessSpace>(
            child_, OwnedFd(static_cast<int>(syscall(SYS_pidfd_open, child_, 0))));
    }
    void TearDown() override {
        end_child();
        close(wake_[1]);
        close(answer_[0]);
        munmap(layout_.data, 4 * kPage);
        munmap(layout_.read_only, kPage);
    }
    void end_child() {
        if (child_ <= 0) return;
        kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
        child_ = 0;
    }
    /// Fills its memory, then answers each byte N with the character at data[N * 64], until the pipe closes.
    [[noreturn]] void run_child() const {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(wake_[1]);
        for (std::size_t i = 0; i < 4 * kPage; ++i) layout_.data[i] = static_cast<char>('a' + i % 26);
        unsigned char byte = 0;
        if (write(answer_[1], &byte, 1) != 1) _exit(1);
        while (::read(wake_[0], &byte, 1) == 1) {
            if (write(answer_[1], layout_.data + byte * 64, 1) != 1) break;
        }
        _exit(0);
    }
    char child_sees(unsigned char index) {
        char answer = 0;
        EXPECT_EQ(write(wake_[1], &index, 1), 1);
        EXPECT_EQ(::read(answer_[0], &answer, 1), 1);
        return answer;
    }
    static std::uint64_t address(const char* at) { return reinterpret_cast<std::uintptr_t>(at); }
    static std::string pattern(std::size_t from, std::size_t length) {
        std::string text;
        for (std::size_t i = from; i < from + length; ++i) text += static_cast<char>('a' + i % 26);
        return text;
    }
    std::string read(std::vector<RemoteRange> ranges) {
        std::size_t total = 0;
        for (const RemoteRange& range : ranges) total += range.length;
        std::string text(total, '?');
        return space_->read(ranges, reinterpret_cast<std::byte*>(text.data())) ? text : "failed";
    }
    bool write_text(const char* at, const std::string& text) {
        const RemoteRange range = {address(at), text.size()};
        const ConstBytes bytes = {reinterpret_cast<const std::byte*>(text.data()), text.size()};
        return space_->write({&range, 1}, {&bytes, 1});
    }

    Layout layout_;
    int wake_[2] = {-1, -1};
    int answer_[2] = {-1, -1};
    pid_t child_ = 0;
    std::unique_ptr<ProcessSpace> space_;
};

TEST_F(ProcessSpaceTest, reads_and_writes_the_childs_private_memory) {
    EXPECT_EQ(space_->direct(address(layout_.data), 1), nullptr);
    EXPECT_EQ(read({{address(layout_.data) + 3, 10}}), pattern(3, 10));
    EXPECT_TRUE(write_text(layout_.data + 64, "Z"));
    EXPECT_EQ(child_sees(1), 'Z');
    EXPECT_EQ(layout_.data[64], 'p');
}

TEST_F(ProcessSpaceTest, gathers_more_ranges_than_a_call_takes) {
    std::vector<RemoteRange> ranges;
    std::string expected;
    for (std::size_t i = 0; i < 2500; ++i) {
        ranges.push_back({address(layout_.data) + i * 6, 2});
        expected += pattern(i * 6, 2);
    }
    ranges.push_back({0, 0});
    EXPECT_EQ(read(ranges), expected);
}

TEST_F(ProcessSpaceTest, writes_streams_cut_differently_on_both_sides) {
    // 3000 sources of 4 bytes into destinations of 3 bytes, 4 bytes apart.
    std::string stream;
    for (int i = 0; i < 12000; ++i) stream += static_cast<char>('A' + i % 23);
    std::vector<ConstBytes> sources;
    std::vector<std::string> pieces;
    for (std::size_t i = 0; i < 3000; ++i) pieces.push_back(stream.substr(i * 4, 4));
    for (const std::string& piece : pieces) {
        sources.push_back({reinterpret_cast<const std::byte*>(piece.data()), 4});
    }
    std::vector<RemoteRange> targets;
    for (std::size_t i = 0; i < 4000; ++i) targets.push_back({address(layout_.data) + i * 4, 3});
    EXPECT_TRUE(space_->write(targets, sources));
    EXPECT_EQ(read(targets), stream);
    EXPECT_EQ(read({{address(layout_.data) + 3, 1}}), pattern(3, 1));
    EXPECT_EQ(read({{address(layout_.data) + 15999, 1}}), pattern(15999, 1));
}

TEST_F(ProcessSpaceTest, addresses_that_are_not_there_fail) {
    EXPECT_EQ(read({{address(layout_.unmapped), 1}}), "failed");
    EXPECT_EQ(read({{address(layout_.unmapped) - 4, 8}}), "failed");
    EXPECT_EQ(read({{address(layout_.data), 8}, {address(layout_.unmapped), 8}}), "failed");
    EXPECT_EQ(read({{0, 8}}), "failed");
    EXPECT_EQ(read({{~std::uint64_t{0} - 3, 8}}), "failed");
    EXPECT_FALSE(write_text(layout_.unmapped - 4, "12345678"));
    EXPECT_FALSE(space_->dead());
    EXPECT_EQ(read({{address(layout_.data), 4}}), pattern(0, 4));
}

TEST_F(ProcessSpaceTest, read_only_pages_can_be_read_only) {
    EXPECT_EQ(read({{address(layout_.read_only), 4}}), std::string(4, '\0'));
    EXPECT_FALSE(write_text(layout_.read_only, "x"));
}

TEST_F(ProcessSpaceTest, a_dead_child_is_noticed) {
    EXPECT_EQ(read({{address(layout_.data), 4}}), pattern(0, 4));
    end_child();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(read({{address(layout_.data), 4}}), "failed");
    EXPECT_TRUE(space_->dead());
    EXPECT_FALSE(write_text(layout_.data, "x"));
}

TEST_F(ProcessSpaceTest, a_zombie_counts_as_dead) {
    kill(child_, SIGKILL);
    siginfo_t info = {};
    waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOWAIT);
    EXPECT_EQ(read({{address(layout_.data), 4}}), "failed");
    EXPECT_TRUE(space_->dead());
}

TEST_F(ProcessSpaceTest, a_pid_that_another_process_has_by_now_is_not_touched) {
    const pid_t earlier = fork();
    if (earlier == 0) _exit(0);
    OwnedFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, earlier, 0)));
    ASSERT_TRUE(pidfd.valid());
    waitpid(earlier, nullptr, 0);
    // As if the child had been given the pid of the process that has ended.
    space_ = std::make_unique<ProcessSpace>(child_, std::move(pidfd));
    EXPECT_FALSE(write_text(layout_.data, "x"));
    EXPECT_EQ(read({{address(layout_.data), 1}}), "failed");
    EXPECT_TRUE(space_->dead());
    EXPECT_EQ(child_sees(0), 'a');
}

TEST_F(ProcessSpaceTest, nothing_is_touched_once_the_session_says_dead) {
    space_->mark_dead();
    EXPECT_FALSE(write_text(layout_.data, "x"));
    EXPECT_EQ(read({{address(layout_.data), 1}}), "failed");
    EXPECT_EQ(child_sees(0), 'a');
}

TEST_F(ProcessSpaceTest, the_probe_reads_one_word_and_writes_the_next) {
    std::uint64_t value = 0;
    ASSERT_TRUE(read({{address(layout_.data), 8}}) == pattern(0, 8));
    std::memcpy(&value, pattern(0, 8).data(), 8);
    EXPECT_FALSE(ProcessSpace::can_reach(child_, address(layout_.data), value + 1));
    EXPECT_EQ(read({{address(layout_.data) + 8, 8}}), pattern(8, 8));
    EXPECT_TRUE(ProcessSpace::can_reach(child_, address(layout_.data), value));
    const std::uint64_t complement = ~value;
    EXPECT_EQ(read({{address(layout_.data) + 8, 8}}),
              std::string(reinterpret_cast<const char*>(&complement), 8));
    EXPECT_FALSE(ProcessSpace::can_reach(child_, address(layout_.unmapped), value));
    EXPECT_FALSE(ProcessSpace::can_reach(child_, address(layout_.read_only), 0));
    const pid_t gone = child_;
    end_child();
    EXPECT_FALSE(ProcessSpace::can_reach(gone, address(layout_.data), value));
}

}  // namespace
}  // namespace uib::memory

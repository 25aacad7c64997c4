// guarded_copy: memory that vanishes makes it fail; anything else dies as before.
#include "engine/memory/guarded_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "engine/memory/fault_range.h"

namespace uib::memory {
namespace {

constexpr std::size_t kPage = 4096;

/// Two pages of a memfd, which can be cut short under the mapping.
class SharedPages {
  public:
    explicit SharedPages(int protection = PROT_READ | PROT_WRITE) : fd_(memfd_create("pages", MFD_CLOEXEC)) {
        EXPECT_EQ(ftruncate(fd_, 2 * kPage), 0);
        data_ = static_cast<char*>(mmap(nullptr, 2 * kPage, protection, MAP_SHARED, fd_, 0));
    }
    ~SharedPages() {
        munmap(data_, 2 * kPage);
        close(fd_);
    }
    SharedPages(const SharedPages&) = delete;
    SharedPages& operator=(const SharedPages&) = delete;
    void cut(std::size_t bytes) const { EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(bytes)), 0); }
    [[nodiscard]] char* data() const { return data_; }

  private:
    int fd_;
    char* data_;
};

class GuardedCopyTest : public testing::Test {
  protected:
    void SetUp() override { install_fault_guard(); }
};

TEST_F(GuardedCopyTest, copies) {
    const SharedPages pages;
    std::vector<char> from(2 * kPage, 'x');
    std::vector<char> to(2 * kPage);
    EXPECT_TRUE(guarded_copy(pages.data(), from.data(), from.size()));
    EXPECT_TRUE(guarded_copy(to.data(), pages.data(), to.size()));
    EXPECT_EQ(from, to);
    EXPECT_TRUE(guarded_copy(nullptr, nullptr, 0));
}

TEST_F(GuardedCopyTest, fails_each_time_when_the_file_was_cut_short) {
    const SharedPages pages;
    std::vector<char> buffer(2 * kPage);
    pages.cut(kPage);
    for (int i = 0; i < 100; ++i) {
        EXPECT_FALSE(guarded_copy(buffer.data(), pages.data(), 2 * kPage));
        EXPECT_FALSE(guarded_copy(pages.data() + kPage, buffer.data(), 1));
        EXPECT_TRUE(guarded_copy(buffer.data(), pages.data(), kPage));
    }
}

TEST_F(GuardedCopyTest, fails_on_unmapped_and_read_only_memory) {
    const SharedPages read_only(PROT_READ);
    char byte = 0;
    EXPECT_TRUE(guarded_copy(&byte, read_only.data(), 1));
    EXPECT_FALSE(guarded_copy(read_only.data(), &byte, 1));
    void* const gone = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_FALSE(guarded_copy(&byte, gone, 1));
    munmap(gone, kPage);
}

TEST_F(GuardedCopyTest, threads_fail_each_by_itself) {
    const SharedPages pages;
    pages.cut(kPage);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            char byte = 0;
            for (int i = 0; i < 500; ++i) {
                const bool bad = t % 2 == 0;
                if (guarded_copy(&byte, pages.data() + (bad ? kPage : 0), 1) == bad) ++wrong;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST_F(GuardedCopyTest, atomics_work_and_fail) {
    const SharedPages pages;
    auto* const word = reinterpret_cast<std::uint64_t*>(pages.data() + kPage);
    *word = 40;
    EXPECT_EQ(guarded_fetch_add(word, 2), 40U);
    EXPECT_EQ(guarded_compare_swap(word, 1, 9), 42U);
    EXPECT_EQ(*word, 42U);
    EXPECT_EQ(guarded_compare_swap(word, 42, 9), 42U);
    EXPECT_EQ(*word, 9U);
    EXPECT_TRUE(guarded_store(word, 77));
    EXPECT_EQ(*word, 77U);
    pages.cut(kPage);
    EXPECT_FALSE(guarded_store(word, 1));
    EXPECT_EQ(guarded_fetch_add(word, 2), std::nullopt);
    EXPECT_EQ(guarded_compare_swap(word, 9, 1), std::nullopt);
}

TEST_F(GuardedCopyTest, a_lent_page_that_vanishes_reads_as_zeros_and_is_noted) {
    const SharedPages pages;
    std::memset(pages.data(), 'x', 2 * kPage);
    const FaultRange range(pages.data(), 2 * kPage, kPage);
    pages.cut(kPage);
    EXPECT_FALSE(range.damaged());
    const volatile char* const reader = pages.data();
    EXPECT_EQ(reader[0], 'x');
    EXPECT_FALSE(range.damaged());
    EXPECT_EQ(reader[kPage + 5], 0);
    EXPECT_TRUE(range.damaged());
    EXPECT_EQ(reader[0], 'x');
}

TEST_F(GuardedCopyTest, a_fault_of_the_engines_own_still_kills) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_DEATH(
        {
            install_fault_guard();
            const SharedPages pages;
            pages.cut(0);
            const volatile char* const reader = pages.data();
            static_cast<void>(reader[0]);
        },
        "");
}

TEST(FaultGuardTest, a_fault_after_a_failed_copy_is_not_taken_for_the_copys) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(
        {
            struct sigaction action = {};
            action.sa_handler = [](int) { _exit(7); };
            sigaction(SIGBUS, &action, nullptr);
            install_fault_guard();
            const SharedPages pages;
            pages.cut(0);
            char byte = 0;
            if (guarded_copy(&byte, pages.data(), 1)) _exit(1);
            const volatile char* const reader = pages.data();
            static_cast<void>(reader[0]);
            _exit(2);
        },
        testing::ExitedWithCode(7), "");
}

TEST(FaultGuardTest, a_fault_outside_the_guarded_access_goes_to_the_earlier_handler) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(
        {
            struct sigaction action = {};
            action.sa_handler = [](int) { _exit(7); };
            sigaction(SIGBUS, &action, nullptr);
            install_fault_guard();
            const SharedPages pages;
            pages.cut(0);
            const volatile char* const reader = pages.data();
            static_cast<void>(reader[0]);
        },
        testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace uib::memory

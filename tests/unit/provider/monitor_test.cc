// The copy helper and the watch on the engine.
#include "provider/monitor.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <vector>

namespace uib::provider {
namespace {

UniqueFd make_staging() {
    UniqueFd fd(::memfd_create("staging", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(fd.get(), 65536), 0);
    return fd;
}

std::uint64_t address_of(const void* memory) {
    return reinterpret_cast<std::uint64_t>(memory);
}

TEST(CopyHelper, copies_both_ways) {
    const UniqueFd staging = make_staging();
    std::vector<char> from(10'000, 'x');
    std::vector<char> to(10'000);
    const ipc::HelperPiece out[] = {{address_of(from.data()), 100, 6000},
                                    {address_of(from.data() + 6000), 6100, 4000}};
    EXPECT_EQ(copy_pieces({1, 0, 2}, out, staging.get()).status, 0);
    const ipc::HelperPiece in[] = {{address_of(to.data()), 100, 10'000}};
    const ipc::HelperReply reply = copy_pieces({2, 1, 1}, in, staging.get());
    EXPECT_EQ(reply.status, 0);
    EXPECT_EQ(reply.tag, 2U);
    EXPECT_EQ(from, to);
}

TEST(CopyHelper, bad_address_is_efault_and_no_fault) {
    const UniqueFd staging = make_staging();
    char good[8] = "abcdefg";
    const ipc::HelperPiece pieces[] = {{address_of(good), 0, 8}, {16, 8, 8}};
    for (std::uint16_t to_client : {std::uint16_t{0}, std::uint16_t{1}}) {
        const ipc::HelperReply reply = copy_pieces({3, to_client, 2}, pieces, staging.get());
        EXPECT_EQ(reply.status, EFAULT);
        EXPECT_EQ(reply.failed_piece, 1U);
    }
}

TEST(CopyHelper, range_that_ends_in_a_hole_is_efault) {
    const UniqueFd staging = make_staging();
    void* pages = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    ::munmap(static_cast<char*>(pages) + 4096, 4096);
    const ipc::HelperPiece piece{address_of(pages) + 4000, 0, 200};
    EXPECT_EQ(copy_pieces({4, 0, 1}, &piece, staging.get()).status, EFAULT);
    ::munmap(pages, 4096);
}

TEST(CopyHelper, read_only_memory_is_not_written) {
    const UniqueFd staging = make_staging();
    void* page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const ipc::HelperPiece piece{address_of(page), 0, 8};
    EXPECT_EQ(copy_pieces({5, 1, 1}, &piece, staging.get()).status, EFAULT);
    ::munmap(page, 4096);
}

struct Pairs {
    Pairs() {
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, helper), 0);
    }
    int control[2];
    int helper[2];
};

TEST(Monitor, serves_the_helper_and_notices_the_hang_up) {
    Pairs pairs;
    std::atomic<int> deaths{0};
    Monitor monitor;
    ASSERT_EQ(monitor.start(pairs.control[0], UniqueFd(pairs.helper[0]), make_staging(), [&] { ++deaths; }),
              0);
    struct {
        ipc::HelperRequest request{7, 0, 1};
        ipc::HelperPiece piece{16, 0, 8};
    } message;
    ASSERT_EQ(::send(pairs.helper[1], &message, sizeof message, 0), static_cast<ssize_t>(sizeof message));
    ipc::HelperReply reply{};
    ASSERT_EQ(::recv(pairs.helper[1], &reply, sizeof reply, 0), static_cast<ssize_t>(sizeof reply));
    EXPECT_EQ(reply.tag, 7U);
    EXPECT_EQ(reply.status, EFAULT);
    // A message on the control socket is not the monitor's.
    ASSERT_EQ(::send(pairs.control[1], "x", 1, 0), 1);
    ::usleep(20'000);
    EXPECT_EQ(deaths, 0);
    char byte = 0;
    EXPECT_EQ(::recv(pairs.control[0], &byte, 1, MSG_DONTWAIT), 1);
    ::close(pairs.control[1]);
    for (int i = 0; i < 500 && deaths == 0; ++i) ::usleep(1'000);
    EXPECT_EQ(deaths, 1);
    monitor.stop();
    EXPECT_EQ(deaths, 1);
    ::close(pairs.control[0]);
    ::close(pairs.helper[1]);
}

}  // namespace
}  // namespace uib::provider

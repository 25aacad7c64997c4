// MappedSpace: what can be mapped, what is refused, and the bytes.
#include "engine/memory/mapped_space.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "engine/memory/owned_fd.h"

namespace uib::memory {
namespace {

constexpr std::uint64_t kSize = 10000;

class MappedSpaceTest : public testing::Test {
  protected:
    MappedSpaceTest() : file_(memfd_create("mapped", MFD_CLOEXEC)) {
        EXPECT_EQ(ftruncate(file_.get(), kSize), 0);
    }
    void put(std::uint64_t at, const std::string& text) const {
        ASSERT_EQ(pwrite(file_.get(), text.data(), text.size(), static_cast<off_t>(at)),
                  static_cast<ssize_t>(text.size()));
    }
    std::string get(std::uint64_t at, std::size_t length) const {
        std::string text(length, '?');
        EXPECT_EQ(pread(file_.get(), text.data(), length, static_cast<off_t>(at)),
                  static_cast<ssize_t>(length));
        return text;
    }
    static std::string read(MappedSpace& space, std::uint64_t at, std::size_t length) {
        std::string text(length, '?');
        const RemoteRange range = {at, length};
        return space.read({&range, 1}, reinterpret_cast<std::byte*>(text.data())) ? text : "failed";
    }
    static bool write(MappedSpace& space, std::uint64_t at, const std::string& text) {
        const RemoteRange range = {at, text.size()};
        const ConstBytes bytes = {reinterpret_cast<const std::byte*>(text.data()), text.size()};
        return space.write({&range, 1}, {&bytes, 1});
    }
    OwnedFd file_;
};

TEST_F(MappedSpaceTest, addresses_are_offsets_in_the_file_whatever_their_alignment) {
    const MappedSpace::Made made = MappedSpace::map_file(file_.get(), 5003, 4001, true);
    ASSERT_EQ(made.error, 0);
    MappedSpace& space = *made.space;
    put(5003, "first");
    put(8999, "last!");
    EXPECT_EQ(read(space, 5003, 5), "first");
    EXPECT_EQ(read(space, 8999, 5), "last!");
    EXPECT_TRUE(write(space, 6000, "written"));
    EXPECT_EQ(get(6000, 7), "written");
    ASSERT_NE(space.direct(5003, 4001), nullptr);
    EXPECT_EQ(static_cast<char>(*space.direct(5003, 1)), 'f');

    EXPECT_EQ(space.direct(5002, 1), nullptr);
    EXPECT_EQ(space.direct(9003, 2), nullptr);
    EXPECT_EQ(space.direct(5003, 4002), nullptr);
    EXPECT_EQ(space.direct(6000, ~std::uint64_t{0}), nullptr);
    EXPECT_EQ(read(space, 9000, 5), "failed");
    EXPECT_FALSE(write(space, 5002, "x"));
}

TEST_F(MappedSpaceTest, streams_are_cut_differently_on_both_sides) {
    const auto made = MappedSpace::map_file(file_.get(), 0, kSize, true);
    const RemoteRange ranges[] = {{100, 3}, {200, 0}, {300, 7}};
    const std::string a = "abcde";
    const std::string b = "fghij";
    const ConstBytes runs[] = {{reinterpret_cast<const std::byte*>(a.data()), 5},
                               {nullptr, 0},
                               {reinterpret_cast<const std::byte*>(b.data()), 5}};
    EXPECT_TRUE(made.space->write(ranges, runs));
    EXPECT_EQ(get(100, 3), "abc");
    EXPECT_EQ(get(300, 7), "defghij");
    std::string back(10, '?');
    EXPECT_TRUE(made.space->read(ranges, reinterpret_cast<std::byte*>(back.data())));
    EXPECT_EQ(back, "abcdefghij");
}

TEST_F(MappedSpaceTest, what_lies_beyond_the_file_is_refused) {
    const auto error = [&](std::uint64_t offset, std::uint64_t length) {
        return MappedSpace::map_file(file_.get(), offset, length, true).error;
    };
    EXPECT_EQ(error(0, kSize), 0);
    EXPECT_EQ(error(0, kSize + 1), EINVAL);
    EXPECT_EQ(error(kSize, 1), EINVAL);
    EXPECT_EQ(error(kSize - 1, 1), 0);
    EXPECT_EQ(error(0, 0), EINVAL);
    EXPECT_EQ(error(~std::uint64_t{0}, 2), EINVAL);
    EXPECT_EQ(error(8, ~std::uint64_t{0} - 4), EINVAL);
}

TEST_F(MappedSpaceTest, what_cannot_be_mapped_is_refused) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const OwnedFd reader(ends[0]);
    const OwnedFd writer(ends[1]);
    EXPECT_EQ(MappedSpace::map_file(reader.get(), 0, 1, false).error, ENODEV);
    const OwnedFd zero(open("/dev/zero", O_RDWR | O_CLOEXEC));
    EXPECT_EQ(MappedSpace::map_file(zero.get(), 0, 1, true).error, ENODEV);
    const OwnedFd proc(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(MappedSpace::map_file(proc.get(), 0, 1, false).error, ENODEV);
    EXPECT_EQ(MappedSpace::map_file(-1, 0, 1, false).error, EBADF);
    EXPECT_EQ(MappedSpace::map_dma_buf(file_.get(), 0, 1, false).error, EINVAL);
    EXPECT_EQ(MappedSpace::map_dma_buf(reader.get(), 0, 1, false).error, EINVAL);
}

TEST_F(MappedSpaceTest, a_read_only_descriptor_does_for_read_only_regions) {
    const std::string path = "/proc/self/fd/" + std::to_string(file_.get());
    const OwnedFd read_only(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(read_only.valid());
    EXPECT_EQ(MappedSpace::map_file(read_only.get(), 0, kSize, true).error, EACCES);
    const auto made = MappedSpace::map_file(read_only.get(), 0, kSize, false);
    ASSERT_EQ(made.error, 0);
    put(1, "seen");
    EXPECT_EQ(read(*made.space, 1, 4), "seen");
    EXPECT_FALSE(write(*made.space, 1, "x"));
}

TEST_F(MappedSpaceTest, spaces_of_one_file_share_an_identity) {
    const auto one = MappedSpace::map_file(file_.get(), 0, 100, true);
    const auto two = MappedSpace::map_file(file_.get(), 5000, 100, false);
    const OwnedFd other_file(memfd_create("other", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(other_file.get(), 100), 0);
    const auto other = MappedSpace::map_file(other_file.get(), 0, 100, true);
    EXPECT_EQ(one.space->identity(), two.space->identity());
    EXPECT_NE(one.space->identity(), other.space->identity());
}

TEST_F(MappedSpaceTest, a_file_cut_short_fails_accesses_and_kills_nobody) {
    const auto made = MappedSpace::map_file(file_.get(), 0, kSize, true);
    ASSERT_EQ(ftruncate(file_.get(), 4096), 0);
    EXPECT_EQ(read(*made.space, 0, 4), std::string(4, '\0'));
    EXPECT_EQ(read(*made.space, 5000, 4), "failed");
    EXPECT_FALSE(write(*made.space, 5000, "x"));

    // A view that was lent before reads zeros; from then on the space is given up.
    const volatile char* const lent = reinterpret_cast<const char*>(made.space->direct(5000, 4));
    ASSERT_TRUE(lent != nullptr);
    EXPECT_EQ(lent[0], 0);
    EXPECT_TRUE(made.space->damaged());
    EXPECT_EQ(made.space->direct(0, 1), nullptr);
    EXPECT_EQ(read(*made.space, 0, 4), "failed");
}

TEST_F(MappedSpaceTest, system_v_segments_by_their_number) {
    const int shmid = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
    ASSERT_GE(shmid, 0) << "no System V shared memory";
    auto* const mine = static_cast<char*>(shmat(shmid, nullptr, 0));
    shmctl(shmid, IPC_RMID, nullptr);
    const MappedSpace::Credentials me = {getuid(), getgid()};
    const MappedSpace::Credentials stranger = {12345, 12345};
    {
        const auto made = MappedSpace::map_sysv(shmid, 100, 8000, true, me);
        ASSERT_EQ(made.error, 0);
        mine[4000] = 'm';
        EXPECT_EQ(read(*made.space, 4000, 1), "m");
        EXPECT_TRUE(write(*made.space, 4001, "w"));
        EXPECT_EQ(mine[4001], 'w');
        const auto again = MappedSpace::map_sysv(shmid, 0, 1, false, me);
        EXPECT_EQ(made.space->identity(), again.space->identity());
        EXPECT_FALSE(write(*again.space, 0, "w"));
    }
    EXPECT_EQ(MappedSpace::map_sysv(shmid, 8000, 193, true, me).error, EINVAL);
    EXPECT_EQ(MappedSpace::map_sysv(shmid, 0, 100, false, stranger).error, EACCES);
    shmid_ds segment = {};
    ASSERT_EQ(shmctl(shmid, IPC_STAT, &segment), 0);
    EXPECT_EQ(segment.shm_nattch, 1U);
    segment.shm_perm.mode = 0604;
    ASSERT_EQ(shmctl(shmid, IPC_SET, &segment), 0);
    EXPECT_EQ(MappedSpace::map_sysv(shmid, 0, 100, false, stranger).error, 0);
    EXPECT_EQ(MappedSpace::map_sysv(shmid, 0, 100, true, stranger).error, EACCES);
    shmdt(mine);
    EXPECT_NE(MappedSpace::map_sysv(shmid, 0, 100, false, me).error, 0);
}

}  // namespace
}  // namespace uib::memory

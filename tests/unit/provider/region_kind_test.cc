#include "provider/region_kind.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace uib::provider {
namespace {

constexpr std::size_t kBytes = 16384;

struct Mapped {
    Mapped(int fd, int flags, off_t offset = 0)
        : base(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, flags, fd, offset)) {
        EXPECT_NE(base, MAP_FAILED);
    }
    ~Mapped() { ::munmap(base, kBytes); }
    std::uint64_t address(std::size_t offset = 0) const {
        return reinterpret_cast<std::uint64_t>(base) + offset;
    }
    void* base;
};

/// The kind of shared memory that nobody holds a descriptor of: the kernel gives the file to privileged
/// processes only.
ipc::RegionKind kind_without_descriptor(const Mapped& map) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", map.address(), map.address() + kBytes);
    const UniqueFd fd(::open(path, O_RDWR | O_CLOEXEC));
    return fd ? ipc::RegionKind::kShared : ipc::RegionKind::kPrivate;
}

bool same_file(int a, int b) {
    struct stat first {
    }, second{};
    return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_ino == second.st_ino;
}

TEST(RegionKind, memfd_is_shared_with_its_offset) {
    const UniqueFd fd(::memfd_create("region", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(fd.get(), 2 * kBytes), 0);
    const Mapped map(fd.get(), MAP_SHARED, kBytes);
    const RegionSource source = find_region_source(map.address(4096), 8192);
    EXPECT_EQ(source.kind, ipc::RegionKind::kShared);
    EXPECT_EQ(source.file_offset, kBytes + 4096);
    EXPECT_TRUE(same_file(source.file.get(), fd.get()));
}

TEST(RegionKind, closed_memfd_can_be_had_by_the_privileged_only) {
    UniqueFd fd(::memfd_create("region", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(fd.get(), kBytes), 0);
    const Mapped map(fd.get(), MAP_SHARED);
    fd.reset();
    EXPECT_EQ(find_region_source(map.address(), kBytes).kind, kind_without_descriptor(map));
}

TEST(RegionKind, descriptor_that_cannot_write_is_of_no_use) {
    UniqueFd fd(::memfd_create("region", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(fd.get(), kBytes), 0);
    const Mapped map(fd.get(), MAP_SHARED);
    const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
    const UniqueFd reader(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(reader);
    fd.reset();
    EXPECT_EQ(find_region_source(map.address(), kBytes).kind, kind_without_descriptor(map));
}

TEST(RegionKind, file_is_opened_by_its_name) {
    char name[] = "/tmp/uib-region-XXXXXX";
    UniqueFd fd(::mkstemp(name));
    ASSERT_TRUE(fd);
    ASSERT_EQ(::ftruncate(fd.get(), kBytes), 0);
    const Mapped map(fd.get(), MAP_SHARED);
    fd.reset();
    EXPECT_EQ(find_region_source(map.address(), kBytes).kind, ipc::RegionKind::kShared);
    ::unlink(name);
    EXPECT_EQ(find_region_source(map.address(), kBytes).kind, kind_without_descriptor(map));
}

TEST(RegionKind, private_memory_of_all_sorts_is_private) {
    const Mapped anonymous(-1, MAP_PRIVATE | MAP_ANONYMOUS);
    EXPECT_EQ(find_region_source(anonymous.address(), kBytes).kind, ipc::RegionKind::kPrivate);
    const Mapped shared_anonymous(-1, MAP_SHARED | MAP_ANONYMOUS);
    EXPECT_EQ(find_region_source(shared_anonymous.address(), kBytes).kind,
              kind_without_descriptor(shared_anonymous));
    const UniqueFd fd(::memfd_create("region", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(fd.get(), kBytes), 0);
    const Mapped copy(fd.get(), MAP_PRIVATE);
    EXPECT_EQ(find_region_source(copy.address(), kBytes).kind, ipc::RegionKind::kPrivate);
}

TEST(RegionKind, short_ranges_and_ranges_beyond_the_mapping_are_private) {
    const UniqueFd fd(::memfd_create("region", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(fd.get(), kBytes), 0);
    const Mapped map(fd.get(), MAP_SHARED);
    EXPECT_EQ(find_region_source(map.address(), 4095).kind, ipc::RegionKind::kPrivate);
    EXPECT_EQ(find_region_source(map.address(4096), kBytes).kind, ipc::RegionKind::kPrivate);
    EXPECT_EQ(find_region_source(16, 4096).kind, ipc::RegionKind::kPrivate);
}

TEST(RegionKind, system_v_segment_is_named_by_its_id) {
    const int id = ::shmget(IPC_PRIVATE, kBytes, IPC_CREAT | 0600);
    ASSERT_GE(id, 0);
    void* base = ::shmat(id, nullptr, 0);
    ASSERT_NE(base, reinterpret_cast<void*>(-1));
    const RegionSource source = find_region_source(reinterpret_cast<std::uint64_t>(base) + 4096, 4096);
    EXPECT_EQ(source.kind, ipc::RegionKind::kSysvShm);
    EXPECT_EQ(source.object_handle, static_cast<std::uint32_t>(id));
    EXPECT_EQ(source.file_offset, 4096U);
    ::shmdt(base);
    ::shmctl(id, IPC_RMID, nullptr);
}

TEST(RegionKind, holes_and_pages_without_the_right_are_found) {
    const Mapped map(-1, MAP_PRIVATE | MAP_ANONYMOUS);
    EXPECT_TRUE(is_mapped(map.address(), kBytes, true));
    EXPECT_TRUE(is_mapped(map.address(100), 1, true));
    ASSERT_EQ(::mprotect(static_cast<char*>(map.base) + 4096, 4096, PROT_READ), 0);
    EXPECT_FALSE(is_mapped(map.address(), kBytes, true));
    EXPECT_TRUE(is_mapped(map.address(), kBytes, false));
    EXPECT_TRUE(is_mapped(map.address(8192), 8192, true));
    ASSERT_EQ(::munmap(static_cast<char*>(map.base) + 4096, 4096), 0);
    EXPECT_FALSE(is_mapped(map.address(), kBytes, false));
    EXPECT_TRUE(is_mapped(map.address(), 4096, true));
}

}  // namespace
}  // namespace uib::provider

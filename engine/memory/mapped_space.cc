#include "engine/memory/mapped_space.h"

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <mutex>
#include <tuple>

#include "engine/memory/guarded_copy.h"
#include "engine/memory/owned_fd.h"

namespace uib::memory {

/// One per shared object that is mapped at the moment.
struct MappedSpace::Identity {
    /// Device and inode, or ~0 and the shmid.
    using Name = std::pair<std::uint64_t, std::uint64_t>;

    static std::shared_ptr<const Identity> of(const Name& name) {
        static std::mutex mutex;
        static std::map<Name, std::weak_ptr<const Identity>> known;
        const std::lock_guard lock(mutex);
        std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
        auto& slot = known[name];
        auto identity = slot.lock();
        if (!identity) slot = identity = std::make_shared<const Identity>();
        return identity;
    }

    std::uint64_t never_empty = 0;  ///< only its address matters
};

/// What is mapped and how to give it back.
struct MappedSpace::Mapping {
    void* base = nullptr;        ///< of the mapping, page aligned
    std::size_t mapped = 0;      ///< its bytes
    std::byte* start = nullptr;  ///< where `offset` is
    std::uint64_t offset = 0;    ///< first address of the space
    std::uint64_t length = 0;
    std::size_t page = 4096;
    bool writable = false;
    bool sysv = false;
    OwnedFd dma_buf;
    Identity::Name name;

    Mapping() = default;
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() {
        if (base == nullptr) return;
        if (sysv) {
            shmdt(base);
        } else {
            munmap(base, mapped);
        }
    }

    /// Maps so that [offset, offset + length) of the file is at `start`. 0 or errno.
    int map(int fd) {
        const std::uint64_t lead = offset % page;
        mapped = static_cast<std::size_t>((lead + length + page - 1) / page * page);
        void* at = mmap(nullptr, mapped, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd,
                        static_cast<off_t>(offset - lead));
        if (at == MAP_FAILED) return errno;
        base = at;
        start = static_cast<std::byte*>(at) + lead;
        return 0;
    }
};

namespace {

constexpr std::uint64_t kMaxFileSize = std::uint64_t{1} << 62;

bool out_of_bounds(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
    return length == 0 || size > kMaxFileSize || offset > size || length > size - offset;
}

/// File systems that serve a page fault by themselves. A fault on any other may depend on a process that the
/// client controls, and would hold up the lane.
bool answers_faults(const struct statfs& where) {
    constexpr std::array<std::uint32_t, 9> kKnown = {
        TMPFS_MAGIC,       HUGETLBFS_MAGIC,  RAMFS_MAGIC,           EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,
        BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, 0x2FC12FC1 /* ZFS */};
    return std::find(kKnown.begin(), kKnown.end(), static_cast<std::uint32_t>(where.f_type)) != kKnown.end();
}

bool may_attach(const struct ipc_perm& permissions, bool writable, MappedSpace::Credentials client) {
    if (client.uid == 0) return true;
    unsigned shift = 0;
    if (client.uid == permissions.uid || client.uid == permissions.cuid) {
        shift = 6;
    } else if (client.gid == permissions.gid || client.gid == permissions.cgid) {
        shift = 3;
    }
    const unsigned wanted = writable ? 06U : 04U;
    return ((permissions.mode >> shift) & wanted) == wanted;
}

/// Cache synchronisation of a dma-buf around an access by the CPU.
class DmaBufAccess {
  public:
    DmaBufAccess(int fd, std::uint64_t direction) : fd_(fd), direction_(direction) {
        good_ = fd < 0 || sync(DMA_BUF_SYNC_START);
    }
    ~DmaBufAccess() {
        if (fd_ >= 0 && good_) sync(DMA_BUF_SYNC_END);
    }
    DmaBufAccess(const DmaBufAccess&) = delete;
    DmaBufAccess& operator=(const DmaBufAccess&) = delete;
    [[nodiscard]] bool good() const { return good_; }

  private:
    bool sync(std::uint64_t phase) const {
        struct dma_buf_sync argument = {};
        argument.flags = phase | direction_;
        int result = 0;
        do {
            result = ioctl(fd_, DMA_BUF_IOCTL_SYNC, &argument);
        } while (result < 0 && (errno == EINTR || errno == EAGAIN));
        return result == 0;
    }
    int fd_;
    std::uint64_t direction_;
    bool good_ = false;
};

}  // namespace

MappedSpace::MappedSpace(std::unique_ptr<Mapping> mapping)
    : mapping_(std::move(mapping)), identity_(Identity::of(mapping_->name)) {
    range_.emplace(mapping_->base, mapping_->mapped, mapping_->page);
}

MappedSpace::~MappedSpace() = default;

MappedSpace::Made MappedSpace::finish(std::unique_ptr<Mapping> mapping) {
    install_fault_guard();
    return {0, std::shared_ptr<MappedSpace>(new MappedSpace(std::move(mapping)))};
}

MappedSpace::Made MappedSpace::map_file(int fd, std::uint64_t offset, std::uint64_t length, bool writable) {
    struct stat status = {};
    struct statfs where = {};
    if (fstat(fd, &status) != 0 || fstatfs(fd, &where) != 0) return {errno, nullptr};
    if (!S_ISREG(status.st_mode) || !answers_faults(where)) return {ENODEV, nullptr};
    if (out_of_bounds(offset, length, static_cast<std::uint64_t>(status.st_size))) return {EINVAL, nullptr};

    auto mapping = std::make_unique<Mapping>();
    mapping->offset = offset;
    mapping->length = length;
    mapping->writable = writable;
    mapping->page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    if (where.f_type == HUGETLBFS_MAGIC) mapping->page = static_cast<std::size_t>(where.f_bsize);
    mapping->name = {status.st_dev, status.st_ino};
    if (const int error = mapping->map(fd)) return {error, nullptr};
    return finish(std::move(mapping));
}

MappedSpace::Made MappedSpace::map_dma_buf(int fd, std::uint64_t offset, std::uint64_t length,
                                           bool writable) {
    const off_t size = lseek(fd, 0, SEEK_END);
    struct stat status = {};
    if (size < 0 || fstat(fd, &status) != 0) return {EINVAL, nullptr};
    if (!DmaBufAccess(fd, DMA_BUF_SYNC_READ).good()) return {EINVAL, nullptr};
    if (out_of_bounds(offset, length, static_cast<std::uint64_t>(size))) return {EINVAL, nullptr};

    auto mapping = std::make_unique<Mapping>();
    mapping->offset = offset;
    mapping->length = length;
    mapping->writable = writable;
    mapping->page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    mapping->name = {status.st_dev, status.st_ino};
    mapping->dma_buf = OwnedFd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!mapping->dma_buf.valid()) return {errno, nullptr};
    if (const int error = mapping->map(fd)) return {error, nullptr};
    return finish(std::move(mapping));
}

MappedSpace::Made MappedSpace::map_sysv(int shmid, std::uint64_t offset, std::uint64_t length, bool writable,
                                        Credentials client) {
    auto mapping = std::make_unique<Mapping>();
    mapping->sysv = true;
    void* const at = shmat(shmid, nullptr, writable ? 0 : SHM_RDONLY);
    if (at == reinterpret_cast<void*>(-1)) return {errno, nullptr};
    mapping->base = at;
    struct shmid_ds segment = {};
    if (shmctl(shmid, IPC_STAT, &segment) != 0) return {errno, nullptr};
    if (!may_attach(segment.shm_perm, writable, client)) return {EACCES, nullptr};
    if (out_of_bounds(offset, length, segment.shm_segsz)) return {EINVAL, nullptr};

    mapping->mapped = segment.shm_segsz;
    mapping->start = static_cast<std::byte*>(at) + offset;
    mapping->offset = offset;
    mapping->length = length;
    mapping->writable = writable;
    mapping->page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    mapping->name = {~std::uint64_t{0}, static_cast<std::uint64_t>(shmid)};
    return finish(std::move(mapping));
}

std::byte* MappedSpace::place(std::uint64_t address, std::uint64_t length) const {
    const std::uint64_t inside = address - mapping_->offset;
    if (inside > mapping_->length || length > mapping_->length - inside || damaged()) return nullptr;
    return mapping_->start + inside;
}

std::byte* MappedSpace::direct(std::uint64_t address, std::uint64_t length) {
    return mapping_->dma_buf.valid() ? nullptr : place(address, length);
}

bool MappedSpace::copy_out(std::span<const RemoteRange> from, std::byte* to) const {
    for (const RemoteRange& range : from) {
        const std::byte* const at = place(range.address, range.length);
        if (at == nullptr || !guarded_copy(to, at, range.length)) return false;
        to += range.length;
    }
    return true;
}

bool MappedSpace::copy_in(std::span<const RemoteRange> to, std::span<const ConstBytes> from) const {
    std::size_t run = 0;
    std::size_t used = 0;  // of run `run`
    for (const RemoteRange& range : to) {
        std::byte* const at = place(range.address, range.length);
        if (at == nullptr) return false;
        for (std::uint64_t done = 0; done < range.length;) {
            while (run < from.size() && used == from[run].length) {
                ++run;
                used = 0;
            }
            if (run == from.size()) return false;
            const std::size_t part = std::min<std::size_t>(range.length - done, from[run].length - used);
            if (!guarded_copy(at + done, from[run].data + used, part)) return false;
            done += part;
            used += part;
        }
    }
    return true;
}

bool MappedSpace::read(std::span<const RemoteRange> from, std::byte* to) {
    const DmaBufAccess access(mapping_->dma_buf.get(), DMA_BUF_SYNC_READ);
    return access.good() && copy_out(from, to);
}

bool MappedSpace::write(std::span<const RemoteRange> to, std::span<const ConstBytes> from) {
    if (!mapping_->writable) return false;
    const DmaBufAccess access(mapping_->dma_buf.get(), DMA_BUF_SYNC_WRITE);
    return access.good() && copy_in(to, from);
}

}  // namespace uib::memory

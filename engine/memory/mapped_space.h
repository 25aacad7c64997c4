// Client memory that is already shared: the engine maps the same pages.
//
// The space's addresses are offsets in the file (or System V segment), so all spaces of one file agree on
// them and share an identity (device and inode), however much of the file each of them maps.
//
// Made on the control thread, used by the lane; copies are guarded, a mapping that lost a page stays damaged:
// every later access of it fails. What is refused, and why: see the factories.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>

#include "engine/memory/address_space.h"
#include "engine/memory/fault_range.h"

namespace uib::memory {

class MappedSpace final : public AddressSpace {
  public:
    /// A space or the errno that tells why there is none.
    struct Made {
        int error = 0;
        std::shared_ptr<MappedSpace> space;
    };

    /// Whose rights to a System V segment count: the client's.
    struct Credentials {
        uid_t uid = 0;
        gid_t gid = 0;
    };

    /// Maps `length` bytes from `offset` of a regular file (memfd, shared memory object, hugetlbfs, disk).
    /// The descriptor is not kept. EINVAL: length 0 or beyond the file's end. ENODEV: not a regular file, or
    /// on a file system whose server may leave a page fault unanswered (FUSE, network). EACCES: the
    /// descriptor was not opened for what is asked.
    static Made map_file(int fd, std::uint64_t offset, std::uint64_t length, bool writable);

    /// A dma-buf. Keeps a duplicate of the descriptor for the cache synchronisation around each copy; has no
    /// direct(). EINVAL: not a dma-buf, or out of bounds.
    static Made map_dma_buf(int fd, std::uint64_t offset, std::uint64_t length, bool writable);

    /// Part of a System V segment. EACCES when the segment's mode does not let `client` in (uid 0 may).
    static Made map_sysv(int shmid, std::uint64_t offset, std::uint64_t length, bool writable,
                         Credentials client);

    ~MappedSpace() override;

    std::byte* direct(std::uint64_t address, std::uint64_t length) override;
    bool read(std::span<const RemoteRange> from, std::byte* to) override;
    bool write(std::span<const RemoteRange> to, std::span<const ConstBytes> from) override;
    [[nodiscard]] const void* identity() const override { return identity_.get(); }

    [[nodiscard]] bool damaged() const { return range_ && range_->damaged(); }

  private:
    struct Identity;
    struct Mapping;

    explicit MappedSpace(std::unique_ptr<Mapping> mapping);
    static Made finish(std::unique_ptr<Mapping> mapping);
    std::byte* place(std::uint64_t address, std::uint64_t length) const;
    bool copy_out(std::span<const RemoteRange> from, std::byte* to) const;
    bool copy_in(std::span<const RemoteRange> to, std::span<const ConstBytes> from) const;

    std::unique_ptr<Mapping> mapping_;
    std::shared_ptr<const Identity> identity_;
    std::optional<FaultRange> range_;
};

}  // namespace uib::memory

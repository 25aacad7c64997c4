// Where the bytes of a region are and how the engine reaches them: one implementation a way of design.md
// section 4.
//
//   MappedSpace    the engine maps the same pages (shared file, dma-buf, System V segment, device memory);
//   copies are memcpy ProcessSpace   another process's private memory: process_vm_readv/writev, or the
//   provider's copy helper where the
//                  kernel refuses
//   NullSpace      null regions: reads give zeros, writes vanish
//   BufferSpace    a plain buffer in this process, for tests and the simulation
//
// Addresses are the space's own (a virtual address in the client, an offset in a mapping). Every access may
// fail (unmapped, truncated file, dead process) and says so; none may kill the engine: touching mapped client
// memory goes through guarded_copy (guarded_copy.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace uib::memory {

struct RemoteRange {
    std::uint64_t address = 0;
    std::uint64_t length = 0;
};
struct ConstBytes {
    const std::byte* data = nullptr;
    std::size_t length = 0;
};

class AddressSpace {
  public:
    AddressSpace() = default;
    AddressSpace(const AddressSpace&) = delete;
    AddressSpace& operator=(const AddressSpace&) = delete;
    virtual ~AddressSpace() = default;

    /// Direct pointer to mapped memory, or nullptr where reads and writes must copy.
    virtual std::byte* direct(std::uint64_t address, std::uint64_t length) = 0;

    /// Gathers the ranges into `to` (sum of lengths). False if any byte could not be read; `to` is then
    /// undefined.
    virtual bool read(std::span<const RemoteRange> from, std::byte* to) = 0;

    /// Writes the byte runs, as one stream, into the ranges, as one stream (equal sums), in order. False if
    /// any byte could not be written; earlier ranges may have been.
    virtual bool write(std::span<const RemoteRange> to, std::span<const ConstBytes> from) = 0;

    /// Two spaces with one identity share their addresses (used to join ranges and to order reads after
    /// writes).
    [[nodiscard]] virtual const void* identity() const { return this; }
};

}  // namespace uib::memory

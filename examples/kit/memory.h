// A page-aligned piece of memory of the kinds that a region can have: private, shared (a memfd, whose
// descriptor stays open as long as the memory: an adapter in another process can only map what it gets a
// descriptor of) or huge pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace uib::kit {

enum class MemoryKind : std::uint8_t { kPrivate, kShared, kHuge };

/// The kind of that name ("private", "shared", "huge"); throws Error for another.
MemoryKind memory_kind(const std::string& name);

/// Owns the mapping. Throws Error when the system has not so much (huge pages must have been reserved).
class Buffer {
  public:
    Buffer(MemoryKind kind, std::size_t bytes);
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::span<std::byte> bytes() const { return {data_, size_}; }

  private:
    std::byte* data_ = nullptr;
    std::size_t size_;
    std::size_t mapped_;
    int file_ = -1;  ///< of shared memory
};

}  // namespace uib::kit

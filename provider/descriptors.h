// Owners of descriptors and of mapped memory. Neither throws.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

#include "engine/ipc/unique_fd.h"

namespace uib::provider {

using ipc::UniqueFd;

/// Owns a shared mapping of a whole file.
class Mapping {
  public:
    Mapping() = default;
    Mapping(Mapping&& other) noexcept
        : base_(std::exchange(other.base_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Mapping& operator=(Mapping&& other) noexcept {
        if (this != &other) {
            unmap();
            base_ = std::exchange(other.base_, nullptr);
            size_ = std::exchange(other.size_, 0);
        }
        return *this;
    }
    ~Mapping() { unmap(); }

    /// Maps all of `fd` with `protection` (PROT_*). False with errno set if that is refused.
    bool map(int fd, int protection);

    std::byte* base() const { return base_; }
    std::size_t size() const { return size_; }
    explicit operator bool() const { return base_ != nullptr; }

    /// Forgets the mapping without undoing it.
    void abandon() {
        base_ = nullptr;
        size_ = 0;
    }

  private:
    void unmap() {
        if (base_ != nullptr) ::munmap(base_, size_);
    }

    std::byte* base_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace uib::provider

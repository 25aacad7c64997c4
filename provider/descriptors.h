// Owners of descriptors and of mapped memory. Neither throws.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

namespace uib::provider {

/// Owns a descriptor.
class UniqueFd {
  public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }
    ~UniqueFd() { reset(); }

    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    int release() { return std::exchange(fd_, -1); }
    void reset(int fd = -1) {
        if (fd_ >= 0) ::close(fd_);
        fd_ = fd;
    }

  private:
    int fd_ = -1;
};

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

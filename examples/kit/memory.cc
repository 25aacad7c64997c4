#include "examples/kit/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "examples/kit/verbs.h"

namespace uib::kit {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// A memfd of that size; throws Error.
int make_file(std::size_t bytes) {
    const int file = ::memfd_create("uib-example", MFD_CLOEXEC);
    if (file < 0) fail("memfd_create", errno);
    if (::ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
    const int number = errno;
    ::close(file);
    fail("ftruncate of a memfd", number);
}

}  // namespace

MemoryKind memory_kind(const std::string& name) {
    if (name == "private") return MemoryKind::kPrivate;
    if (name == "shared") return MemoryKind::kShared;
    if (name == "huge") return MemoryKind::kHuge;
    throw Error("memory is private, shared or huge, not " + name);
}

Buffer::Buffer(MemoryKind kind, std::size_t bytes) : size_(bytes), mapped_(bytes) {
    void* mapping = MAP_FAILED;
    if (kind == MemoryKind::kShared) {
        file_ = make_file(bytes);
        mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    } else {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS;
        if (kind == MemoryKind::kHuge) {
            flags |= MAP_HUGETLB;
            mapped_ = (bytes + kHugePage - 1) / kHugePage * kHugePage;
        }
        mapping = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, flags, -1, 0);
    }
    if (mapping == MAP_FAILED) {
        const int number = errno;
        if (file_ >= 0) ::close(file_);
        fail("memory of " + std::to_string(mapped_) + " bytes", number);
    }
    data_ = static_cast<std::byte*>(mapping);
}

Buffer::~Buffer() {
    ::munmap(data_, mapped_);
}

}  // namespace uib::kit

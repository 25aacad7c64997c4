#include "provider/descriptors.h"

#include <sys/stat.h>

namespace uib::provider {

bool Mapping::map(int fd, int protection) {
    unmap();
    abandon();
    struct stat file {};
    if (::fstat(fd, &file) != 0) return false;
    const auto size = static_cast<std::size_t>(file.st_size);
    void* base = ::mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) return false;
    base_ = static_cast<std::byte*>(base);
    size_ = size;
    return true;
}

}  // namespace uib::provider

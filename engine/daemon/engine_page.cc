#include "engine/daemon/engine_page.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <new>
#include <system_error>

#include "engine/ipc/control.h"
#include "engine/ipc/usable_cpus.h"

namespace uib::daemon {

namespace {

constexpr std::size_t kPageBytes = 4096;
static_assert(sizeof(ipc::EnginePage) <= kPageBytes);

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

EnginePage::EnginePage() : fd_(::memfd_create("uib-engine", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (!fd_) fail("memfd_create");
    if (::ftruncate(fd_.get(), kPageBytes) != 0) fail("ftruncate");
    void* memory = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (memory == MAP_FAILED) fail("mmap");
    page_ = new (memory) ipc::EnginePage{};
    page_->magic = ipc::kEnginePageMagic;
    page_->version = ipc::kProtocolVersion;
    page_->usable_cpus = ipc::usable_cpus();
    if (::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0)
        fail("sealing the engine page");
}

EnginePage::~EnginePage() {
    ::munmap(page_, kPageBytes);
}

}  // namespace uib::daemon

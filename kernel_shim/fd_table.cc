#include "kernel_shim/fd_table.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace uib::shim {

constinit std::atomic<FdWord> direct_fds[kDirectFds]{};

namespace {

constexpr std::size_t kPageFds = 4096;
constexpr std::size_t kMaxFd = std::size_t{1} << 30;  // the kernel's own limit of descriptor numbers
struct Page {
    std::atomic<FdWord> words[kPageFds];
};
constinit std::atomic<Page*> pages[kMaxFd / kPageFds]{};

struct Registration {
    std::atomic<std::uint32_t> generation;  ///< odd while in use
    std::atomic<decltype(Callbacks::on_write)> on_write;
    std::atomic<decltype(Callbacks::on_ioctl)> on_ioctl;
    std::atomic<void*> cookie;
};
constexpr std::size_t kRegistrations = 0xffff;
constinit Registration registrations[kRegistrations]{};
constinit std::atomic<std::uint32_t> next_registration{0};

/// The process whose descriptors the table holds.
constinit std::atomic<pid_t> owner{0};

bool table_is_ours() {
    const pid_t known = owner.load(std::memory_order_relaxed);
    return known == 0 || known == getpid();
}

std::atomic<FdWord>* paged_word(int fd, bool make) {
    if (fd < 0 || static_cast<std::size_t>(fd) >= kMaxFd) return nullptr;
    std::atomic<Page*>& place = pages[static_cast<std::size_t>(fd) / kPageFds];
    Page* page = place.load(std::memory_order_acquire);
    if (page == nullptr && make) {
        void* memory =
            mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return nullptr;
        if (place.compare_exchange_strong(page, static_cast<Page*>(memory))) {
            page = static_cast<Page*>(memory);
        } else {
            munmap(memory, sizeof(Page));  // another thread was first
        }
    }
    return page == nullptr ? nullptr : &page->words[static_cast<std::size_t>(fd) % kPageFds];
}

std::atomic<FdWord>* word_of(int fd, bool make) {
    return static_cast<unsigned>(fd) < kDirectFds ? &direct_fds[fd] : paged_word(fd, make);
}

void store(int fd, FdWord word) {
    if (std::atomic<FdWord>* place = word_of(fd, word != 0)) place->store(word, std::memory_order_release);
}

FdWord load(int fd) {
    const std::atomic<FdWord>* place = word_of(fd, false);
    return place == nullptr ? 0 : place->load(std::memory_order_acquire);
}

/// The registration that the word names, while it lasts.
Registration* registration_of(FdWord word) {
    const std::uint32_t place = word >> 16 & 0xffff;
    if (place == 0) return nullptr;
    Registration& registration = registrations[place - 1];
    const bool lasts = registration.generation.load(std::memory_order_acquire) == word >> 32;
    return lasts ? &registration : nullptr;
}

}  // namespace

FdWord find_paged(int fd) {
    const std::atomic<FdWord>* word = paged_word(fd, false);
    return word == nullptr ? 0 : word->load(std::memory_order_relaxed);
}

void enter_fd(int fd, unsigned device) {
    store(fd, FdWord{device} + 1);
}

void forget_fd(int fd) {
    if (find_fd(fd) != 0 && table_is_ours()) store(fd, 0);
}

void copy_fd(int from, int to) {
    if (from == to) return;
    const FdWord word = load(from);
    if ((word != 0 || find_fd(to) != 0) && table_is_ours()) store(to, word);
}

void for_each_fd(unsigned first, unsigned last, void (*visit)(int fd)) {
    const std::size_t end = std::min(std::size_t{last} + 1, kMaxFd);
    std::size_t fd = first;
    while (fd < end) {
        if (fd >= kDirectFds && pages[fd / kPageFds].load(std::memory_order_acquire) == nullptr) {
            fd = (fd / kPageFds + 1) * kPageFds;
            continue;
        }
        if (find_fd(static_cast<int>(fd)) != 0) visit(static_cast<int>(fd));
        ++fd;
    }
}

void watch_forks() {
    owner.store(getpid(), std::memory_order_relaxed);
    pthread_atfork(nullptr, nullptr, [] { owner.store(getpid(), std::memory_order_relaxed); });
}

Callbacks callbacks_of(int fd) {
    const Registration* registration = registration_of(load(fd));
    if (registration == nullptr) return {};
    return {registration->on_write.load(std::memory_order_relaxed),
            registration->on_ioctl.load(std::memory_order_relaxed),
            registration->cookie.load(std::memory_order_relaxed)};
}

void register_callbacks(int fd, const Callbacks& callbacks) {
    unregister_callbacks(fd);
    const FdWord word = load(fd);
    for (std::size_t tries = 0; tries < kRegistrations; ++tries) {
        const std::uint32_t place =
            next_registration.fetch_add(1, std::memory_order_relaxed) % kRegistrations;
        Registration& registration = registrations[place];
        std::uint32_t generation = registration.generation.load();
        if (generation % 2 != 0 ||
            !registration.generation.compare_exchange_strong(generation, generation + 1))
            continue;
        registration.on_write.store(callbacks.on_write, std::memory_order_relaxed);
        registration.on_ioctl.store(callbacks.on_ioctl, std::memory_order_relaxed);
        registration.cookie.store(callbacks.cookie, std::memory_order_relaxed);
        store(fd, (word & 0xffff) | FdWord{place + 1} << 16 | FdWord{generation + 1} << 32);
        return;
    }
}

void unregister_callbacks(int fd) {
    const FdWord word = load(fd);
    if (Registration* registration = registration_of(word)) {
        std::uint32_t generation = static_cast<std::uint32_t>(word >> 32);
        registration->generation.compare_exchange_strong(generation, generation + 1);
    }
    if (word != 0) store(fd, word & 0xffff);
}

}  // namespace uib::shim

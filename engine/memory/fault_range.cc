#include "engine/memory/fault_range.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>

namespace uib::memory {

struct FaultRange::Node {
    std::atomic<std::uintptr_t> start{0};
    std::atomic<std::size_t> length{0};  ///< 0: the node is free
    std::atomic<std::size_t> page{0};
    std::atomic<bool> damaged{false};
    Node* next = nullptr;  ///< fixed once the node is reachable
};

namespace {
std::mutex nodes_mutex;  // of those who add and remove; the handler takes none
constinit std::atomic<void*> first_node{nullptr};
}  // namespace

FaultRange::Node* FaultRange::head() {
    return static_cast<Node*>(first_node.load());
}

FaultRange::FaultRange(void* start, std::size_t length, std::size_t page) {
    const std::lock_guard lock(nodes_mutex);
    Node* node = head();
    while (node != nullptr && node->length.load() != 0) node = node->next;
    const bool fresh = node == nullptr;
    if (fresh) {
        node = std::make_unique<Node>().release();  // stays for ever: a handler may be looking at it
        node->next = head();
    }
    node->start.store(reinterpret_cast<std::uintptr_t>(start));
    node->page.store(page);
    node->damaged.store(false);
    node->length.store(length);
    if (fresh) first_node.store(node);
    node_ = node;
}

FaultRange::~FaultRange() {
    const std::lock_guard lock(nodes_mutex);
    node_->length.store(0);
}

bool FaultRange::damaged() const {
    return node_->damaged.load(std::memory_order_relaxed);
}

bool FaultRange::mend(void* address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    for (Node* node = head(); node != nullptr; node = node->next) {
        const std::uintptr_t start = node->start.load();
        if (at - start >= node->length.load()) continue;
        const std::size_t page = node->page.load();
        const int saved_errno = errno;
        void* const place = reinterpret_cast<void*>(at / page * page);
        const long result = syscall(SYS_mmap, place, page, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0L);
        errno = saved_errno;
        if (result == -1) return false;
        node->damaged.store(true);
        return true;
    }
    return false;
}

}  // namespace uib::memory

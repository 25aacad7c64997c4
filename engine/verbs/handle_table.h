// Handles: small numbers that name a context's objects. A handle is reused only after its object is gone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace uib::verbs {

template <typename T>
class HandleTable {
  public:
    /// Throws where there is no memory, and has then changed nothing; take() has all it needs from here.
    std::uint32_t add(std::unique_ptr<T> object) {
        if (!free_.empty()) {
            const std::uint32_t handle = free_.back();
            free_.pop_back();
            objects_[handle] = std::move(object);
            ++live_;
            return handle;
        }
        if (objects_.size() == objects_.capacity()) {
            const std::size_t room = std::max<std::size_t>(2 * objects_.size(), kFirstRoom);
            free_.reserve(room);
            objects_.reserve(room);
        }
        objects_.push_back(std::move(object));
        ++live_;
        return static_cast<std::uint32_t>(objects_.size() - 1);
    }

    /// Nullptr when there is no such object.
    [[nodiscard]] T* get(std::uint32_t handle) const {
        return handle < objects_.size() ? objects_[handle].get() : nullptr;
    }

    std::unique_ptr<T> take(std::uint32_t handle) {
        std::unique_ptr<T> object = std::move(objects_[handle]);
        free_.push_back(handle);
        --live_;
        return object;
    }

    [[nodiscard]] std::uint32_t live() const { return live_; }

    /// Calls f(handle, object); f may take that handle.
    template <typename F>
    void for_each(F&& f) {
        for (std::uint32_t handle = 0; handle < objects_.size(); ++handle)
            if (objects_[handle] != nullptr) f(handle, *objects_[handle]);
    }

  private:
    static constexpr std::size_t kFirstRoom = 16;

    std::vector<std::unique_ptr<T>> objects_;
    std::vector<std::uint32_t> free_;
    std::uint32_t live_ = 0;
};

}  // namespace uib::verbs

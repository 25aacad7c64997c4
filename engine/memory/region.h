// Memory regions and windows as the transport sees them.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/ipc/control_memory.h"
#include "engine/memory/address_space.h"
#include "engine/memory/slice.h"

namespace uib::memory {

/// What a region is made of. `iova` is the address that work requests use; byte iova + k is space_address + k
/// in `space`.
struct RegionInit {
    PdId pd = 0;
    std::uint32_t access = 0;  ///< ipc::AccessFlags
    std::uint64_t iova = 0;    ///< 0 for zero-based regions
    std::uint64_t length = 0;  ///< ~0 for implicit on-demand regions (whole address space)
    std::shared_ptr<AddressSpace> space;
    std::uint64_t space_address = 0;
    /// The session whose provider can put bytes into the region by itself, from the receive slot
    /// (ipc::kCqeInline); 0 where none can (dma-bufs).
    std::uint32_t placing_client = 0;
    /// Local and remote invalidate may take it. Not so for regions of ibv_reg_mr (o9-5.2.2).
    bool may_be_invalidated = false;
};

class Region {
  public:
    explicit Region(RegionInit init) : init_(std::move(init)) {}

    [[nodiscard]] PdId pd() const { return init_.pd; }
    [[nodiscard]] std::uint32_t access() const { return init_.access; }
    [[nodiscard]] std::uint64_t iova() const { return init_.iova; }
    [[nodiscard]] std::uint64_t length() const { return init_.length; }
    [[nodiscard]] AddressSpace& space() const { return *init_.space; }
    [[nodiscard]] std::uint64_t space_address(std::uint64_t offset) const {
        return init_.space_address + offset;
    }
    [[nodiscard]] std::uint32_t placing_client() const { return init_.placing_client; }
    [[nodiscard]] std::uint32_t key() const { return key_; }
    [[nodiscard]] std::uint32_t windows_bound() const { return windows_; }
    [[nodiscard]] const RegionInit& init() const { return init_; }

  private:
    friend class KeyTable;
    RegionInit init_;
    std::uint32_t key_ = 0;      ///< L_Key and R_Key
    std::uint32_t windows_ = 0;  ///< windows bound to it
    bool invalidated_ = false;   ///< by local or remote invalidate
};

enum class WindowType : std::uint8_t { kType1 = 1, kType2 = 2 };

class Window {
  public:
    Window(PdId pd, WindowType type) : pd_(pd), type_(type) {}

    [[nodiscard]] PdId pd() const { return pd_; }
    [[nodiscard]] WindowType type() const { return type_; }
    [[nodiscard]] std::uint32_t key() const { return key_; }
    [[nodiscard]] bool bound() const { return region_ != nullptr; }

  private:
    friend class KeyTable;
    PdId pd_;
    WindowType type_;
    std::uint32_t key_ = 0;
    Region* region_ = nullptr;     ///< bound to, or nullptr
    std::uint32_t qp_number_ = 0;  ///< type 2: the only QP that may use it (type 2B)
    std::uint64_t base_ = 0;       ///< first address
    std::uint64_t length_ = 0;
    std::uint32_t access_ = 0;
};

}  // namespace uib::memory

// Keys: from the 32 bits of an L_Key or R_Key to the region or window, and every check of an access.
//
// The low 8 bits are the variant, drawn at random for each new use; the upper 24 are the table's index put
// through a keyed permutation drawn at start-up (a Feistel network on 24 bits), so that from the keys one
// knows neither a live key nor the next one can be told. Slots of destroyed keys are reused last-in-first-out
// with a new variant, which always differs from the one before.
//
// Checks are made in the order key, PD, bounds (no wrap), access rights, window state, region state
// (IBA 10.6.3, 9.7.4.1.5; o9-5.2.2 for invalidation). Used by the lane's thread alone. Owns regions and
// windows.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/memory/region.h"
#include "engine/memory/slice.h"

namespace uib::memory {

/// Outcome of a check: a slice, or why not.
struct Checked {
    AccessError error = AccessError::kNone;
    Slice slice;
    [[nodiscard]] bool ok() const { return error == AccessError::kNone; }
};

/// A bind request (IBA 10.6.6.2, 11.4.1.1 bind).
struct BindRequest {
    PdId pd = 0;  ///< the QP's
    std::uint32_t qp_number = 0;
    std::uint32_t region_key = 0;  ///< L_Key of the region; ignored when length is 0 (type 1: unbind)
    /// The window's next R_Key, of its own slot. Type 1 may leave it 0: then a fresh one is drawn.
    /// (ibv_bind_mw tells the program the key before the engine binds, so the provider chooses its variant.)
    std::uint32_t new_key = 0;
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::uint32_t access = 0;  ///< remote rights of the window (and kAccessZeroBased)
};

class KeyTable {
  public:
    /// `seed` drives permutation and variants; 0 draws one from the kernel.
    explicit KeyTable(std::uint64_t seed = 0);
    ~KeyTable();
    KeyTable(const KeyTable&) = delete;
    KeyTable& operator=(const KeyTable&) = delete;

    Region* add_region(RegionInit init);
    /// EBUSY (from errno.h) while windows are bound to it, else 0.
    int remove_region(Region* region);
    /// Gives the region a new definition and a new key variant. EBUSY as above.
    int change_region(Region* region, RegionInit init);
    /// As change_region where only rights and PD change: the key stays (ibv_rereg_mr without
    /// CHANGE_TRANSLATION).
    int change_rights(Region* region, PdId pd, std::uint32_t access);

    Window* add_window(PdId pd, WindowType type);
    void remove_window(Window* window);

    /// Scatter-gather entry of a local work request: L_Key, PD, bounds, kAccessLocalWrite if `write`.
    Checked check_local(PdId pd, std::uint32_t lkey, std::uint64_t address, std::uint64_t length, bool write);

    /// Remote access by R_Key of a region or window. `rights`: kAccessRemoteRead, kAccessRemoteWrite or
    /// kAccessRemoteAtomic.
    Checked check_remote(PdId pd, std::uint32_t qp_number, std::uint32_t rkey, std::uint64_t address,
                         std::uint64_t length, std::uint32_t rights);

    /// Binds a window, whose key is new_key afterwards or, for type 1 without one, a fresh one (Window::key).
    /// An error leaves all as it was.
    AccessError bind(Window* window, const BindRequest& request);

    /// Local invalidate work request (region of this PD that allows it, or type 2 window).
    AccessError local_invalidate(PdId pd, std::uint32_t qp_number, std::uint32_t key);
    /// SEND with Invalidate, at the responder: the rules of o9-5.2.2 (transport-tables.md 17.6).
    AccessError remote_invalidate(PdId pd, std::uint32_t qp_number, std::uint32_t key);

    /// A QP is gone or was reset: its type 2 windows become free.
    void release_windows_of(std::uint32_t qp_number);

    [[nodiscard]] std::uint32_t size() const { return live_; }

  private:
    struct Entry;
    struct Permutation {
        std::uint32_t round_keys[4];
        [[nodiscard]] std::uint32_t forward(std::uint32_t index) const;
        [[nodiscard]] std::uint32_t backward(std::uint32_t value) const;
    };
    Entry* find(std::uint32_t key);
    std::uint32_t take_slot();
    void free_slot(std::uint32_t index);
    std::uint8_t next_variant();
    std::uint32_t new_key(std::uint32_t index);
    void unbind(Window& window);
    Checked check_window(const Window& window, PdId pd, std::uint32_t qp_number, std::uint32_t rkey,
                         RemoteRange range, std::uint32_t rights);
    AccessError check_bind(const Window& window, const BindRequest& request, Region*& region);

    Permutation permutation_{};
    std::uint64_t random_state_ = 0;
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> free_;
    std::unordered_map<std::uint32_t, std::vector<Window*>> windows_of_qp_;  ///< bound ones of type 2
    std::uint32_t live_ = 0;
};

}  // namespace uib::memory

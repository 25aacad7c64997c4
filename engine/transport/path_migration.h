// Automatic path migration of a connected queue pair (IBA 17.2.8, 9.6.1.2.3, 9.7.6.1).
//
// States and the MigReq bit of what is sent:
//   MIGRATED  1   the primary path is the only one
//   REARM     0   the client has loaded a new alternate path; waits until the peer shows the same
//   ARMED     0   both ends are ready: packets of the alternate path are taken, too
// REARM becomes ARMED with the first valid packet whose MigReq is clear. ARMED becomes MIGRATED, and the
// alternate path takes the primary's place, when the client asks for it, when the error retry counter has run
// out (o9-82, o9-86), or when a packet with MigReq set comes that fits the alternate path. One that fits the
// primary path only says that the peer cannot do what it asks for: the QP stays, the client gets
// PATH_MIG_ERR once for each arming, and the packet is served, as its header is valid.
//
// The client may ask for ARMED directly (libibverbs has it, as mlx5 does): the peer is then taken to be
// ready. An alternate path that goes away takes the state back to MIGRATED, without a swap.
#pragma once

#include <cstdint>

#include "engine/transport/types.h"

namespace uib::transport {

class PathMigration {
  public:
    enum class Verdict : std::uint8_t { kStay, kMigrate, kRefuse };

    void reset() {
        state_ = MigrationState::kMigrated;
        refused_ = false;
    }

    /// A transition by the client, with the parameters that it sets. kMigrate: the paths must be swapped.
    Verdict request(const QpParameters& parameters);
    /// A valid packet that came while not MIGRATED. `alternate`: it fits the alternate path.
    Verdict judge(bool mig_req, bool alternate);
    /// The alternate path takes the primary's place.
    void swap(QpParameters& parameters);

    [[nodiscard]] MigrationState state() const { return state_; }
    [[nodiscard]] std::uint32_t swaps() const { return swaps_; }
    [[nodiscard]] bool migrated() const { return state_ == MigrationState::kMigrated; }

  private:
    MigrationState state_ = MigrationState::kMigrated;
    bool refused_ = false;  ///< told since the last arming
    std::uint32_t swaps_ = 0;
};

}  // namespace uib::transport

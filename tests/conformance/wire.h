// Between a script and the machine under test: everything that crosses is encoded to the bytes of an
// InfiniBand link and decoded again, with all of the codec's checks, so that rows about bits are tested on
// bits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/transport/types.h"
#include "net/wire/codec.h"
#include "tests/conformance/frame.h"
#include "tests/unit/transport/station.h"

namespace uib::conformance {

using transport::testing::Station;

net::Service wire_service(transport::Service service);

/// A packet in both forms. The decoded payload views `frame`, so it moves but is not copied.
struct Carried {
    transport::Time at = 0;  ///< since the script's start
    std::unique_ptr<std::vector<std::byte>> frame;
    net::Packet packet;
    net::DecodeError error = net::DecodeError::kNone;

    /// The byte at `offset` of a part.
    [[nodiscard]] std::uint8_t byte(Part part, std::size_t offset) const;
};

class Wire {
  public:
    explicit Wire(const Station& machine) : machine_(machine) {}

    /// What arrives at the machine when the peer sends `frame`.
    [[nodiscard]] Carried carry(const Frame& frame) const;
    /// What the machine has sent.
    [[nodiscard]] static Carried carry(const net::Packet& packet);

    /// How `got` differs from what was expected; empty if it does not.
    [[nodiscard]] static std::string difference(const Frame& want, const Carried& got);
    /// What every packet of every service must hold and `got` does not: versions, reserved bits, PadCnt
    /// (C9-5 to C9-8, o9-3.a1, C9-119.a1); empty if all is well.
    [[nodiscard]] static std::string violation(const Carried& got);
    /// For transcripts: the packet with its PSN as scripts count.
    [[nodiscard]] static std::string text(const Carried& carried);

    /// The wire's PSN of a script's.
    [[nodiscard]] static std::uint32_t psn(int relative) {
        return (kStartPsn + static_cast<std::uint32_t>(relative)) & 0xFFFFFF;
    }
    [[nodiscard]] static int relative(std::uint32_t psn);

  private:
    [[nodiscard]] net::Packet headers(const Frame& frame) const;

    const Station& machine_;
};

}  // namespace uib::conformance

// The packet receiver machine (7.3, figure 51): which runs of stream elements are packets.
//
// Elements go in one by one; bytes between delimiters are one element, for all of them take the same way. A
// packet that went bad before its end is told once: what still belongs to it is skipped up to the next
// delimiter, and the start delimiter that broke it off starts nothing.
#pragma once

#include "net/link/link_types.h"

namespace uib::net::link {

enum class Element : std::uint8_t {
    kIdle,
    kStartData,  ///< SDP
    kStartLink,  ///< SLP
    kEndGood,    ///< EGP
    kEndBad,     ///< EBP
    kBytes,
    kError,
};

enum class Received : std::uint8_t {
    kNothing,           ///< yet
    kDataPacket,        ///< to the data packet check
    kLinkPacket,        ///< to the link packet check
    kBadPacket,         ///< BadPacket: local physical error
    kBadPacketDiscard,  ///< BadPacketDiscard: likewise
    kMarkedBadPacket,   ///< MarkedBadPacket: remote physical error
};

class PacketReceiver {
  public:
    Received on(Element element);
    /// A whole frame of an encapsulation, as the elements that it stands for. `kNothing` if it is empty.
    Received on(const Frame& frame);

  private:
    enum class State : std::uint8_t { kIdle, kData, kLink, kSkip };

    Received on_idle(Element element);
    Received on_data(Element element);
    Received on_link(Element element);
    Received bad(Element element, Received what);

    State state_ = State::kIdle;
};

}  // namespace uib::net::link

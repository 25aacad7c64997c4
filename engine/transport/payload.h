// Payload of send requests: bytes [offset, offset + length) of the scatter-gather list or the inline data, as
// one view (for packets), and the way back (READ responses, atomic results). Shared by all requesters.
#pragma once

#include <cstdint>
#include <span>

#include "engine/transport/types.h"

namespace uib::transport {

class Machine;

/// Most bytes that one burst gathers; a multiple of every MTU.
inline constexpr std::uint32_t kBurstBytes = 64 * 1024;

/// Bytes of a message with `rest` bytes left that may be gathered now: whole packets of at most `packets`, or
/// the rest. 0 when the turn's staging memory is used up.
std::uint32_t burst_bytes(Machine& machine, const SendRequest& request, std::uint32_t rest,
                          std::uint32_t packets);

/// kSuccess and the view, or kLocalProtection.
Status gather_payload(Machine& machine, const SendRequest& request, std::uint32_t offset,
                      std::uint32_t length, std::span<const std::byte>& view);

/// Lays bytes into the request's list from `offset` on. False on a protection fault.
bool scatter_payload(Machine& machine, const SendRequest& request, std::uint32_t offset,
                     std::span<const std::byte> bytes);

/// Checks that the request's whole list may be written.
bool check_targets(Machine& machine, const SendRequest& request, std::uint64_t length);

}  // namespace uib::transport

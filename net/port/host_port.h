// What ports on host interfaces ask of the interface and its user, and what they say when it is not so. All
// throw std::runtime_error with a message for the operator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/ipc/unique_fd.h"
#include "net/port/frame_port.h"
#include "net/port/host_interface.h"

namespace uib::net {

[[noreturn]] void fail(const FramePortOptions& options, const std::string& why);

/// The interface of `options`, which is there and set up.
HostInterface enabled_interface(const FramePortOptions& options);
/// The MTU to start with: what is wanted, no more than the interface has, or what it has.
std::uint32_t first_mtu(const FramePortOptions& options, const HostInterface& host);
/// A packet socket that hears nothing yet.
ipc::UniqueFd packet_socket(const FramePortOptions& options);

/// What refresh() is to follow: the MTU now. Nothing while the interface is away or set down.
std::optional<std::uint32_t> mtu_now(const FramePortOptions& options, const HostInterface& host);

}  // namespace uib::net

// The module that has DPDK in it: loaded when the first port wants it, never unloaded (EAL cannot be
// stopped).
#pragma once

#include <memory>

#include "net/port/frame_port.h"

namespace uib::net {

/// Opens a port: driver af_packet without DPDK (packet_port.h), unless its device arguments are given, others
/// through the module (libuib-dpdk.so, beside the program, in ../lib/uib or where UIB_DPDK_MODULE says).
/// Throws std::runtime_error with a message for the operator.
std::unique_ptr<FramePort> open_frame_port(const FramePortOptions& options);

/// What the module exports under the name kOpenSymbol: makes a port, or returns nullptr and fills `error`.
using OpenFramePort = FramePort* (*)(const FramePortOptions& options, std::string& error);
inline constexpr const char* kOpenSymbol = "uib_open_frame_port";

}  // namespace uib::net

// How numbers and addresses look in the status.
#pragma once

#include <cstdint>
#include <string>

#include "net/port/frame_port.h"

namespace uib::daemon {

/// "0x" and 16 digits.
std::string hex(std::uint64_t value);
std::string mac_text(const net::MacAddress& mac);

}  // namespace uib::daemon

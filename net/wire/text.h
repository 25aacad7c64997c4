// Building of lines for people, piece by piece.
#pragma once

#include <string>

#include "net/wire/packet.h"

namespace uib::net {

/// Appends at most 127 characters in the manner of printf.
[[gnu::format(printf, 2, 3)]] void append(std::string& text, const char* format, ...);

/// Eight groups of four digits.
std::string gid_text(const Gid& gid);

}  // namespace uib::net

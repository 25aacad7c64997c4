// Building of lines for people, piece by piece.
#pragma once

#include <string>

namespace uib::net {

/// Appends at most 127 characters in the manner of printf.
[[gnu::format(printf, 2, 3)]] void append(std::string& text, const char* format, ...);

}  // namespace uib::net

#include "net/wire/text.h"

#include <array>
#include <cstdarg>
#include <cstdio>

namespace uib::net {

void append(std::string& text, const char* format, ...) {
    std::array<char, 128> piece{};
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(piece.data(), piece.size(), format, arguments);
    va_end(arguments);
    text += piece.data();
}

}  // namespace uib::net

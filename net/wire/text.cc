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

std::string gid_text(const Gid& gid) {
    std::string text;
    for (std::size_t i = 0; i < gid.size(); i += 2)
        append(text, "%s%02x%02x", i == 0 ? "" : ":", unsigned{gid[i]}, unsigned{gid[i + 1]});
    return text;
}

}  // namespace uib::net

#pragma once

#include <fmt/core.h>

#include <cstdint>

namespace uib::daemon {

enum class LogLevel : std::uint8_t { kInfo, kWarn, kError };

/// One line of the engine's log, in fmt's syntax. What a line holds is put into words in one place: spdlog's
/// header does it in each file anew, which takes the compiler several seconds.
void write_log(LogLevel level, fmt::string_view format, fmt::format_args arguments);

template <typename... Arguments>
void log_line(LogLevel level, fmt::format_string<Arguments...> format, const Arguments&... arguments) {
    write_log(level, format, fmt::make_format_args(arguments...));
}

template <typename... Arguments>
void log_info(fmt::format_string<Arguments...> format, const Arguments&... arguments) {
    write_log(LogLevel::kInfo, format, fmt::make_format_args(arguments...));
}

template <typename... Arguments>
void log_warn(fmt::format_string<Arguments...> format, const Arguments&... arguments) {
    write_log(LogLevel::kWarn, format, fmt::make_format_args(arguments...));
}

template <typename... Arguments>
void log_error(fmt::format_string<Arguments...> format, const Arguments&... arguments) {
    write_log(LogLevel::kError, format, fmt::make_format_args(arguments...));
}

}  // namespace uib::daemon

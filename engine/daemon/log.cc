#include "engine/daemon/log.h"

#include <spdlog/spdlog.h>

#include <array>
#include <cstddef>

namespace uib::daemon {

void write_log(LogLevel level, fmt::string_view format, fmt::format_args arguments) {
    constexpr std::array kLevels = {spdlog::level::info, spdlog::level::warn, spdlog::level::err};
    const spdlog::level::level_enum shown = kLevels.at(static_cast<std::size_t>(level));
    if (spdlog::should_log(shown)) spdlog::log(shown, fmt::vformat(format, arguments));
}

}  // namespace uib::daemon

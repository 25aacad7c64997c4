// Where the other pieces of uib are, relative to the command itself: in a build tree or where they were
// installed.
#pragma once

#include <filesystem>
#include <optional>

namespace uib::cli {

struct Layout {
    std::optional<std::filesystem::path> engine;    ///< uibd
    std::optional<std::filesystem::path> shim;      ///< libuib-shim.so
    std::optional<std::filesystem::path> provider;  ///< libuib-rdmavNN.so
};

/// Looks for the pieces of the command at `executable`.
Layout find_layout(const std::filesystem::path& executable);

/// Path of the running command.
std::filesystem::path own_path();

}  // namespace uib::cli

#include "engine/cli/layout.h"

#include <algorithm>
#include <string>
#include <vector>

namespace uib::cli {
namespace fs = std::filesystem;
namespace {

std::optional<fs::path> first_file(const std::vector<fs::path>& candidates) {
    std::error_code ignored;
    for (const fs::path& candidate : candidates)
        if (fs::is_regular_file(candidate, ignored)) return candidate.lexically_normal();
    return std::nullopt;
}

/// Library directories that an installation below `prefix` may use, the one of this build first.
std::vector<fs::path> library_directories(const fs::path& prefix) {
    std::vector<fs::path> directories;
    const std::string architecture = UIB_LIBRARY_ARCHITECTURE;
    directories.push_back(prefix / UIB_INSTALL_LIBDIR);  // an absolute one stays absolute
    if (!architecture.empty()) directories.push_back(prefix / "lib" / architecture);
    directories.push_back(prefix / "lib64");
    directories.push_back(prefix / "lib");
    return directories;
}

/// The provider's name ends in the number of libibverbs' private interface that it was built for.
std::optional<fs::path> provider_in(const fs::path& directory) {
    std::error_code ignored;
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(directory, ignored)) {
        const std::string name = entry.path().filename();
        if (name.starts_with("libuib-rdmav") && name.ends_with(".so")) found.push_back(entry.path());
    }
    if (found.empty()) return std::nullopt;
    return std::ranges::max(found).lexically_normal();
}

}  // namespace

Layout find_layout(const fs::path& executable) {
    const fs::path directory = executable.parent_path();
    const fs::path prefix = directory.parent_path();
    std::vector<fs::path> shims = {prefix / "lib/libuib-shim.so"};
    std::vector<fs::path> providers = {prefix / "provider"};
    for (const fs::path& library : library_directories(prefix)) {
        shims.push_back(library / "uib/libuib-shim.so");
        providers.push_back(library / "libibverbs");
    }

    Layout layout;
    layout.engine = first_file(
        {directory / "uibd", prefix / "libexec/uib/uibd", prefix / "libexec/uibd", prefix / "sbin/uibd"});
    layout.shim = first_file(shims);
    for (const fs::path& candidate : providers)
        if (!layout.provider) layout.provider = provider_in(candidate);
    return layout;
}

fs::path own_path() {
    return fs::read_symlink("/proc/self/exe");
}

}  // namespace uib::cli

#include "engine/cli/environment.h"

#include <cstdlib>
#include <filesystem>

namespace uib::cli {
namespace {

constexpr const char* kShimName = "libuib-shim.so";
constexpr const char* kDriverFile = "/etc/libibverbs.d/uib.driver";

std::string environment_or_empty(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// libibverbs adds "-rdmavNN.so" to the paths of its drivers.
std::string driver_path(const std::filesystem::path& provider) {
    const std::string path = provider.string();
    return path.substr(0, path.rfind("-rdmav"));
}

/// Puts `first` before what a list of paths holds, once.
std::string prepended(const std::string& first, const std::string& list) {
    std::string result = first;
    std::size_t start = 0;
    while (start <= list.size()) {
        const std::size_t end = std::min(list.find_first_of(":; ", start), list.size());
        const std::string item = list.substr(start, end - start);
        if (!item.empty() && item != first) result += ":" + item;
        start = end + 1;
    }
    return result;
}

}  // namespace

Variables program_environment(const Layout& layout, const std::string& socket) {
    if (!layout.shim)
        throw Failure(std::string("cannot find ") + kShimName + "; is uib installed completely?");
    Variables variables;
    const std::string preload = preload_without_shim(environment_or_empty("LD_PRELOAD"));
    variables.emplace_back("LD_PRELOAD", prepended(layout.shim->string(), preload));
    if (layout.provider) {
        // libibverbs reads the second name only where the first is not set.
        const char* name = std::getenv("RDMAV_DRIVERS") != nullptr ? "RDMAV_DRIVERS" : "IBV_DRIVERS";
        variables.emplace_back(name, prepended(driver_path(*layout.provider), environment_or_empty(name)));
    } else if (!std::filesystem::exists(kDriverFile)) {
        throw Failure(std::string("cannot find libuib-rdmav*.so nor ") + kDriverFile +
                      "; is uib installed completely?");
    }
    variables.emplace_back("UIB_SOCKET", socket);
    return variables;
}

std::string preload_without_shim(const std::string& preload) {
    std::string result;
    std::size_t start = 0;
    while (start < preload.size()) {
        const std::size_t end = std::min(preload.find_first_of(": ", start), preload.size());
        const std::string item = preload.substr(start, end - start);
        if (!item.empty() && std::filesystem::path(item).filename() != kShimName)
            result += (result.empty() ? "" : ":") + item;
        start = end + 1;
    }
    return result;
}

std::string shell_quoted(const std::string& text) {
    std::string quoted = "'";
    for (const char c : text) {
        if (c == '\'') {
            quoted += "'\\''";
        } else {
            quoted += c;
        }
    }
    return quoted + "'";
}

std::string shell_exports(const Variables& variables) {
    std::string text;
    for (const auto& [name, value] : variables) text += "export " + name + "=" + shell_quoted(value) + "\n";
    return text;
}

}  // namespace uib::cli

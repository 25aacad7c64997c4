// The environment in which a program finds uib's devices.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/cli/layout.h"

namespace uib::cli {

/// A command cannot do what was asked; what() is the line for the user.
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The engine refuses a request; `error` is its errno.
struct Refusal : Failure {
    Refusal(const std::string& what, int errno_value) : Failure(what), error(errno_value) {}
    int error;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

/// LD_PRELOAD with the shim before what is there, the variable that makes libibverbs load the provider
/// (unless it is installed where libibverbs looks by itself), and UIB_SOCKET. Throws Failure if a piece of
/// uib is missing.
Variables program_environment(const Layout& layout, const std::string& socket);

/// The value of LD_PRELOAD without the shim; the engine must not be shown its own devices.
std::string preload_without_shim(const std::string& preload);

/// The text in single quotes, for a POSIX shell.
std::string shell_quoted(const std::string& text);

/// `export NAME='VALUE'` lines.
std::string shell_exports(const Variables& variables);

}  // namespace uib::cli

// `uib run`: a command with uib's devices, and with an engine of its own where none is there.
#pragma once

#include <string>
#include <vector>

namespace uib::cli {

enum class EngineChoice {
    kAuto,     ///< the engine that answers, else a private one; with UIB_SOCKET or --config set see
               ///< run_command()
    kNever,    ///< no engine is started nor looked for
    kPrivate,  ///< always an engine of its own
};

struct RunOptions {
    EngineChoice engine = EngineChoice::kAuto;
    std::string config;
    std::string log_level = "warning";
    std::vector<std::string> command;
};

inline constexpr int kFailureStatus = 125;  ///< uib itself failed
inline constexpr int kCannotExecute = 126;  ///< the command is there but cannot be executed
inline constexpr int kCommandNotFound = 127;

/// Returns the status to exit with: the command's, or 128 + n when signal n ended it. Without a private
/// engine the command takes this process's place, and only failures return. Throws Failure.
///
/// kAuto: a configuration asks for a private engine; a UIB_SOCKET that somebody has set means that engine and
/// no other.
int run_command(const RunOptions& options);

}  // namespace uib::cli

// The `uib` command: run programs with uib's devices, ask an engine how it is, see and disturb its packets.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "engine/cli/capture.h"
#include "engine/cli/check_config.h"
#include "engine/cli/engine_client.h"
#include "engine/cli/environment.h"
#include "engine/cli/fault.h"
#include "engine/cli/layout.h"
#include "engine/cli/run.h"
#include "engine/cli/status.h"
#include "engine/ipc/socket_path.h"

namespace {

using namespace uib::cli;

constexpr int kUsageStatus = 2;

/// Splits "run OPTIONS [--] COMMAND ARGUMENTS": the command's own options are not ours to parse. What is left
/// in `arguments` is for the parser.
std::vector<std::string> take_command(std::vector<std::string>& arguments, const CLI::App& run) {
    if (arguments.empty() || arguments[0] != "run") return {};
    std::size_t i = 1;
    while (i < arguments.size() && arguments[i].starts_with("-") && arguments[i] != "--") {
        const CLI::Option* option = run.get_option_no_throw(arguments[i]);
        const bool has_value = option != nullptr && option->get_items_expected_max() > 0;
        i += has_value ? 2 : 1;
    }
    i = std::min(i, arguments.size());
    std::vector<std::string> command(arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
    arguments.resize(i);
    if (!command.empty() && command.front() == "--") command.erase(command.begin());
    return command;
}

int print_status(bool as_json) {
    const std::string report = EngineClient(uib::ipc::socket_path()).status();
    std::fputs((as_json ? status_json(report) : status_tables(report)).c_str(), stdout);
    return 0;
}

int print_environment() {
    const Variables variables = program_environment(find_layout(own_path()), uib::ipc::socket_path());
    std::fputs(shell_exports(variables).c_str(), stdout);
    return 0;
}

int run(std::vector<std::string> arguments) {
    CLI::App app("InfiniBand in user space: run programs with uib's devices, ask an engine how it is.",
                 "uib");
    app.set_version_flag("--version", "uib " UIB_VERSION);
    app.require_subcommand(1);

    RunOptions options;
    CLI::App* run_app =
        app.add_subcommand("run", "Run a command with uib's devices: uib run [OPTIONS] -- COMMAND...");
    const std::map<std::string, EngineChoice> choices = {
        {"auto", EngineChoice::kAuto}, {"never", EngineChoice::kNever}, {"private", EngineChoice::kPrivate}};
    run_app
        ->add_option(
            "--engine", options.engine,
            "auto: the engine that answers, else one for this command; never: start none; private: always "
            "one for this command")
        ->transform(CLI::CheckedTransformer(choices, CLI::ignore_case))
        ->option_text("auto|never|private");
    run_app->add_option("--config", options.config, "Configuration of the engine for this command")
        ->check(CLI::ExistingFile)
        ->option_text("FILE");
    run_app->add_option("--log-level", options.log_level, "Log level of the engine for this command")
        ->option_text("LEVEL");

    bool as_json = false;
    const CLI::App* env_app =
        app.add_subcommand("env", "Print the environment for a shell: eval \"$(uib env)\"");
    CLI::App* status_app =
        app.add_subcommand("status", "Show the engine's devices, ports, clients and objects");
    status_app->add_flag("--json", as_json, "The engine's report itself");

    CaptureCommand capture(app);
    FaultCommand fault(app);
    const CheckConfigCommand check_config(app);

    options.command = take_command(arguments, *run_app);
    try {
        app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::ParseError& error) {
        const int status = app.exit(error);
        if (status == 0) return 0;  // --help, --version
        return *run_app ? kFailureStatus : kUsageStatus;
    }
    if (*env_app) return print_environment();
    if (*status_app) return print_status(as_json);
    if (capture.chosen()) return capture.run();
    if (fault.chosen()) return fault.run();
    if (check_config.chosen()) return check_config.run();
    if (options.command.empty()) throw Failure("no command to run: uib run [OPTIONS] -- COMMAND...");
    return run_command(options);
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    try {
        return run(arguments);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "uib: %s\n", error.what());
        return !arguments.empty() && arguments[0] == "run" ? kFailureStatus : 1;
    }
}

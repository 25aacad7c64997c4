// Runs programs for tests.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace uib::test {

struct Outcome {
    int status = 0;  ///< exit status, or 128 + signal
    std::string output;
    std::string errors;
};

/// Runs a program to its end with the variables ("NAME=VALUE", or "NAME" to have none) put over this
/// process's environment.
Outcome run_program(const std::vector<std::string>& command, const std::vector<std::string>& variables);

/// Starts it with its output in a file.
pid_t start_program(const std::vector<std::string>& command, const std::vector<std::string>& variables,
                    const std::string& output_path, const std::string& error_path);
int wait_for(pid_t pid);

}  // namespace uib::test

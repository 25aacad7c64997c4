#include "tests/unit/kernel_shim/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/unit/kernel_shim/fake_engine.h"

namespace uib::test {

pid_t start_program(const std::vector<std::string>& command, const std::vector<std::string>& variables,
                    const std::string& output_path, const std::string& error_path) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    const int output = open(output_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int errors = open(error_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(output, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    for (const std::string& variable : variables) {
        const std::size_t equals = variable.find('=');
        if (equals == std::string::npos) {
            unsetenv(variable.c_str());
        } else {
            setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
        }
    }
    std::vector<char*> pointers;
    for (const std::string& argument : command) pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    execvp(pointers[0], pointers.data());
    _exit(127);
}

int wait_for(pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Outcome run_program(const std::vector<std::string>& command, const std::vector<std::string>& variables) {
    const TemporaryDirectory directory;
    Outcome outcome;
    outcome.status = wait_for(start_program(command, variables, directory / "out", directory / "err"));
    outcome.output = file_text(directory / "out");
    outcome.errors = file_text(directory / "err");
    return outcome;
}

}  // namespace uib::test

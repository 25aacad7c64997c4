#include "tests/unit/kernel_shim/shim_environment.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "engine/ipc/socket_path.h"

namespace uib::test {
namespace {

/// A root without RDMA devices for the tree; the real /sys is the shim's to answer here.
std::string empty_host() {
    return std::string(std::getenv("UIB_SHIM_TEST")) + "/host";
}

}  // namespace

ShimTest::ShimTest() : socket(ipc::socket_path()), engine(socket), tree(socket, empty_host()) {
    tree.publish({sample_device("uib0", 0), sample_device("uib1", 1)});
}

}  // namespace uib::test

int main(int argc, char** argv) {
    const char* inside = std::getenv("UIB_SHIM_TEST");
    if (inside != nullptr) {
        testing::InitGoogleTest(&argc, argv);
        return RUN_ALL_TESTS();
    }
    const uib::test::TemporaryDirectory directory;
    setenv("UIB_SHIM_TEST", directory.path().c_str(), 1);
    setenv("UIB_SOCKET", (directory / "engine.sock").c_str(), 1);
    setenv("LD_PRELOAD", UIB_SHIM_PATH, 1);
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);  // a time limit ends this process alone
        execv("/proc/self/exe", argv);
        _exit(127);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

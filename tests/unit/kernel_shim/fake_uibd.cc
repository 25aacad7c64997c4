// An engine for the command's tests: takes uibd's options, publishes a device and answers. FAKE_UIBD_MODE
// makes it misbehave: "fail" ends at once, "deaf" never gets ready and ignores SIGTERM.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/unit/kernel_shim/fake_engine.h"

int main(int argc, char** argv) {
    std::map<std::string, std::string> options;
    for (int i = 1; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
    const char* mode = std::getenv("FAKE_UIBD_MODE");
    const std::string behaviour = mode == nullptr ? "" : mode;
    if (behaviour == "fail") return 3;

    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    const std::string config = options.contains("--config") ? options["--config"] : "none";
    const char* preload = std::getenv("LD_PRELOAD");
    const uib::test::FakeEngine engine(options.at("--socket"),
                                       "{\"version\":\"fake\",\"pid\":" + std::to_string(getpid()) +
                                           ",\"config\":\"" + config + "\",\"preload\":\"" +
                                           (preload == nullptr ? "" : preload) + "\"}");
    uib::daemon::DeviceTree tree(options.at("--socket"));
    tree.publish({uib::test::sample_device("rxe_private")});
    if (behaviour == "deaf") {
        while (true) pause();
    }
    const int ready = std::atoi(options.at("--ready-fd").c_str());
    if (write(ready, "1", 1) != 1) return 1;
    close(ready);
    int number = 0;
    sigwait(&set, &number);
    return 0;
}

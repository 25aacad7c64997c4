// The uib command with a stand-in for uibd, in the directories of an installation.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/kernel_shim/fake_engine.h"
#include "tests/unit/kernel_shim/process.h"

namespace uib::test {
namespace {

namespace fs = std::filesystem;

struct CliTest : testing::Test {
    CliTest() {
        for (const char* name : {"prefix/bin", "prefix/lib/uib", "prefix/lib/libibverbs", "tmp"})
            fs::create_directories(root / name);
        fs::copy_file(UIB_CLI_PATH, uib);
        fs::copy_file(FAKE_UIBD_PATH, root / "prefix/bin/uibd");
        fs::copy_file(UIB_SHIM_PATH, shim);
        std::ofstream(driver + "-rdmav34.so");  // what libibverbs cannot load it leaves out, with a warning
    }

    Outcome run(const std::vector<std::string>& arguments, std::vector<std::string> variables = {}) const {
        std::vector<std::string> command = {uib};
        command.insert(command.end(), arguments.begin(), arguments.end());
        return run_program(command, environment(std::move(variables)));
    }
    std::vector<std::string> environment(std::vector<std::string> more) const {
        std::vector<std::string> all = {"UIB_SOCKET",
                                        "LD_PRELOAD",
                                        "IBV_DRIVERS",
                                        "RDMAV_DRIVERS",
                                        "ASAN_OPTIONS=verify_asan_link_order=0",
                                        "XDG_RUNTIME_DIR=" + (root / "tmp")};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    /// What private engines have left behind.
    long leftovers() const {
        return std::distance(fs::directory_iterator(root / "tmp"), fs::directory_iterator());
    }

    TemporaryDirectory root;
    const std::string uib = root / "prefix/bin/uib";
    const std::string shim = root / "prefix/lib/uib/libuib-shim.so";
    const std::string driver = root / "prefix/lib/libibverbs/libuib";
    const std::string socket = root / "engine.sock";
};

TEST_F(CliTest, env_prints_what_a_shell_needs) {
    EXPECT_EQ(run({"env"}, {"UIB_SOCKET=/tmp/it's"}).output, "export LD_PRELOAD='" + shim +
                                                                 "'\nexport IBV_DRIVERS='" + driver +
                                                                 "'\nexport UIB_SOCKET='/tmp/it'\\''s'\n");
    const Outcome outcome =
        run({"env"}, {"LD_PRELOAD=/lib/x86_64-linux-gnu/libm.so.6:" + shim, "RDMAV_DRIVERS=mlx5"});
    EXPECT_EQ(outcome.output, "export LD_PRELOAD='" + shim +
                                  ":/lib/x86_64-linux-gnu/libm.so.6'\nexport RDMAV_DRIVERS='" + driver +
                                  ":mlx5'\nexport UIB_SOCKET='" + (root / "tmp/uib/engine.sock") + "'\n");
}

TEST_F(CliTest, run_starts_a_private_engine_and_ends_it) {
    const Outcome outcome = run(
        {"run", "--", "sh", "-c", "ls /sys/class/infiniband; echo $UIB_SOCKET; echo $LD_PRELOAD; exit 7"});
    EXPECT_EQ(outcome.status, 7) << outcome.errors;
    EXPECT_EQ(outcome.output.substr(0, 12), "rxe_private\n");
    EXPECT_NE(outcome.output.find("/tmp/uib-"), std::string::npos) << outcome.output;
    EXPECT_NE(outcome.output.find(shim), std::string::npos);
    EXPECT_EQ(outcome.errors, "");
    EXPECT_EQ(leftovers(), 0);
}

TEST_F(CliTest, run_gives_the_engine_its_configuration_and_not_the_shim) {
    const std::string config = root / "uib.toml";
    std::ofstream(config) << "\n";
    const Outcome outcome =
        run({"run", "--config", config, "--engine=private", uib, "status", "--json"}, {"LD_PRELOAD=" + shim});
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    EXPECT_NE(outcome.output.find("\"config\": \"" + config + "\""), std::string::npos) << outcome.output;
    EXPECT_NE(outcome.output.find("\"preload\": \"\""), std::string::npos) << outcome.output;
}

TEST_F(CliTest, run_uses_the_engine_that_answers) {
    const FakeEngine engine(socket, R"({"version":"shared"})");
    const Outcome outcome = run({"run", "--", uib, "status", "--json"}, {"UIB_SOCKET=" + socket});
    EXPECT_NE(outcome.output.find("shared"), std::string::npos) << outcome.output << outcome.errors;
    // Its own only when asked for.
    const Outcome own =
        run({"run", "--engine", "private", "--", uib, "status", "--json"}, {"UIB_SOCKET=" + socket});
    EXPECT_NE(own.output.find("fake"), std::string::npos) << own.output << own.errors;
}

TEST_F(CliTest, a_socket_that_was_given_means_that_engine) {
    const Outcome outcome = run({"run", "--", "echo", "ran"}, {"UIB_SOCKET=" + socket});
    EXPECT_EQ(outcome.status, 125);
    EXPECT_EQ(outcome.output, "");
    EXPECT_NE(outcome.errors.find("no engine answers at " + socket), std::string::npos) << outcome.errors;
    EXPECT_EQ(run({"run", "--engine", "never", "--", "echo", "ran"}, {"UIB_SOCKET=" + socket}).output,
              "ran\n");
}

TEST_F(CliTest, run_exits_as_the_command_does) {
    for (const char* engine : {"--engine=private", "--engine=never"}) {
        EXPECT_EQ(run({"run", engine, "--", "true"}).status, 0);
        EXPECT_EQ(run({"run", engine, "false"}).status, 1);
        EXPECT_EQ(run({"run", engine, "--", "sh", "-c", "kill -SEGV $$"}).status, 128 + SIGSEGV);
        EXPECT_EQ(run({"run", engine, "--", "/nonexistent"}).status, 127);
        EXPECT_EQ(run({"run", engine, "--", "/etc/passwd"}).status, 126);
        EXPECT_EQ(run({"run", engine, "--", "echo", "--engine", "-x"}).output, "--engine -x\n");
    }
    EXPECT_EQ(run({"run"}).status, 125);
    EXPECT_EQ(run({"run", "--engine", "maybe", "--", "true"}).status, 125);
    EXPECT_EQ(run({"frobnicate"}).status, 2);
    EXPECT_EQ(leftovers(), 0);
}

TEST_F(CliTest, run_passes_signals_on_and_cleans_up) {
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
        fs::remove(root / "out");
        const pid_t pid =
            start_program({uib, "run", "--engine", "private", "--", "sh", "-c",
                           "trap 'exit 40' TERM INT HUP; echo up; while :; do sleep 0.01; done"},
                          environment({}), root / "out", root / "err");
        for (int i = 0; i < 1000 && file_text(root / "out").empty(); ++i) usleep(10000);
        ASSERT_EQ(file_text(root / "out"), "up\n") << file_text(root / "err");
        kill(pid, number);
        EXPECT_EQ(wait_for(pid), 40) << number;
        EXPECT_EQ(leftovers(), 0);
    }
}

TEST_F(CliTest, the_command_has_the_signals_it_would_have_without_uib) {
    const pid_t pid = start_program({uib, "run", "--engine", "private", "--", "sleep", "50"}, environment({}),
                                    root / "out", root / "err");
    for (int i = 0; i < 1000 && leftovers() == 0; ++i) usleep(10000);
    usleep(300000);
    kill(pid, SIGTERM);
    EXPECT_EQ(wait_for(pid), 128 + SIGTERM);
    const auto mask = [&](const char* engine) {
        return run({"run", engine, "--", "grep", "Sig[BI]", "/proc/self/status"}).output;
    };
    EXPECT_NE(mask("--engine=private").find("SigBlk:\t0000000000000000"), std::string::npos);
    EXPECT_EQ(mask("--engine=private"), mask("--engine=never"));
}

TEST_F(CliTest, an_engine_that_does_not_start_is_told) {
    const Outcome outcome = run({"run", "--", "echo", "ran"}, {"FAKE_UIBD_MODE=fail"});
    EXPECT_EQ(outcome.status, 125);
    EXPECT_EQ(outcome.errors, "uib: the engine ended before it was ready: exit status 3\n");
    EXPECT_EQ(outcome.output, "");
    EXPECT_EQ(leftovers(), 0);
}

TEST_F(CliTest, a_signal_ends_the_wait_for_a_deaf_engine) {
    const pid_t pid = start_program({uib, "run", "--", "echo", "ran"}, environment({"FAKE_UIBD_MODE=deaf"}),
                                    root / "out", root / "err");
    for (int i = 0; i < 1000 && leftovers() == 0; ++i) usleep(10000);
    usleep(100000);
    kill(pid, SIGTERM);
    EXPECT_EQ(wait_for(pid), 128 + SIGTERM);  // after the engine was killed: it ignores SIGTERM
    EXPECT_EQ(leftovers(), 0);
}

TEST_F(CliTest, an_engine_that_dies_is_told_and_the_command_goes_on) {
    const Outcome outcome =
        run({"run", "--engine", "private", "--", "sh", "-c",
             "kill -9 $(" + uib +
                 " status --json | sed -n 's/.*\"pid\": \\([0-9]*\\).*/\\1/p'); sleep 0.3; echo on"});
    EXPECT_EQ(outcome.output, "on\n");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_NE(outcome.errors.find("the engine ended while the command runs: signal 9 (Killed)"),
              std::string::npos)
        << outcome.errors;
    EXPECT_EQ(leftovers(), 0);
}

TEST_F(CliTest, an_incomplete_installation_is_told) {
    fs::remove(driver + "-rdmav34.so");
    EXPECT_NE(run({"env"}).errors.find("cannot find libuib-rdmav"), std::string::npos);
    fs::remove(shim);
    EXPECT_NE(run({"run", "--engine=never", "--", "true"}).errors.find("cannot find libuib-shim.so"),
              std::string::npos);
}

TEST_F(CliTest, pieces_are_found_in_a_build_tree) {
    fs::create_directories(root / "build/bin");
    fs::create_directories(root / "build/lib");
    fs::create_directories(root / "build/provider");
    fs::copy_file(UIB_CLI_PATH, root / "build/bin/uib");
    fs::copy_file(UIB_SHIM_PATH, root / "build/lib/libuib-shim.so");
    std::ofstream(root / "build/provider/libuib-rdmav34.so");
    const Outcome outcome = run_program({root / "build/bin/uib", "env"}, environment({}));
    EXPECT_NE(outcome.output.find("LD_PRELOAD='" + (root / "build/lib/libuib-shim.so'")), std::string::npos);
    EXPECT_NE(outcome.output.find("IBV_DRIVERS='" + (root / "build/provider/libuib'")), std::string::npos);
}

TEST_F(CliTest, status_shows_tables_or_the_report) {
    const std::string report = R"({"version":"0.1.0","pid":42,"socket":"/s","uptime_s":12,
        "devices":[{"name":"uib0","node_guid":"0211:22ff:fe33:4400","ports":[{"number":1,"state":"ACTIVE","lid":1,
        "ingress_drop":"off","gids":["fe80::1","::"],"counters":{}}]}],
        "clients":[{"pid":7,"command":"ib_send_bw","device":"uib0","objects":{"pd":1,"mr":2,"cq":3,"qp":4}}],
        "objects":{"pd":1,"mr":2,"mw":0,"cq":3,"qp":4,"srq":0,"channel":0,"dm":0},
        "counters":{"rx_dropped":3,"quiet":0}})";
    const FakeEngine engine(socket, report);
    const Outcome tables = run({"status"}, {"UIB_SOCKET=" + socket});
    EXPECT_EQ(tables.status, 0) << tables.errors;
    EXPECT_EQ(tables.output,
              "engine 0.1.0, pid 42, up 12 s, socket /s\n\n"
              "DEVICE  NODE GUID            PORT  STATE   LID  INGRESS DROP  GID\n"
              "uib0    0211:22ff:fe33:4400  1     ACTIVE  1    off           fe80::1\n\n"
              "PID  COMMAND     DEVICE  PD  MR  MW  CQ  QP  SRQ  CHANNEL  DM\n"
              "7    ib_send_bw  uib0    1   2   -   3   4   -    -        -\n"
              "all  1 clients           1   2   0   3   4   0    0        0\n\n"
              "rx_dropped  3\n");
    const Outcome json = run({"status", "--json"}, {"UIB_SOCKET=" + socket});
    EXPECT_NE(json.output.find("\"uptime_s\": 12"), std::string::npos);
}

TEST_F(CliTest, status_without_an_engine_says_so) {
    const Outcome outcome = run({"status"}, {"UIB_SOCKET=" + socket});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.errors, "uib: no engine answers at " + socket +
                                  " (start one with `uibd`, or use `uib run -- COMMAND`)\n");
    const FakeEngine broken(socket, "no json");
    EXPECT_EQ(run({"status"}, {"UIB_SOCKET=" + socket}).status, 1);
}

TEST_F(CliTest, version_is_told) {
    EXPECT_EQ(run({"--version"}).output, "uib " UIB_VERSION "\n");
}

}  // namespace
}  // namespace uib::test

// Unmodified programs under the shim, in processes of their own.
#include <gtest/gtest.h>

#include "tests/unit/kernel_shim/fake_engine.h"
#include "tests/unit/kernel_shim/process.h"

namespace uib::test {
namespace {

struct ProgramsTest : testing::Test {
    Outcome run(const std::vector<std::string>& command) const {
        return run_program(command,
                           {"LD_PRELOAD=" UIB_SHIM_PATH, "UIB_SOCKET=" + socket, "IBV_SHOW_WARNINGS=1"});
    }
    Outcome run_without(const std::vector<std::string>& command) const {
        return run_program(command, {"LD_PRELOAD"});
    }

    TemporaryDirectory directory;
    const std::string socket = directory / "engine.sock";
};

/// A name that libibverbs gives to one of its own drivers, so that its list has it without ours.
constexpr const char* kListed = "rxe_test";

TEST_F(ProgramsTest, ibv_devices_lists_the_devices) {
    const FakeEngine engine(socket);
    daemon::DeviceTree tree(socket);
    tree.publish({sample_device(kListed), sample_device("nobodys", 1)});
    const Outcome outcome = run({"ibv_devices"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_NE(outcome.output.find("rxe_test"), std::string::npos) << outcome.output;
    EXPECT_NE(outcome.output.find("021122fffe334400"), std::string::npos) << outcome.output;
    EXPECT_NE(outcome.errors.find("no userspace device-specific driver found for nobodys"), std::string::npos)
        << outcome.errors;
}

TEST_F(ProgramsTest, python_and_coreutils_see_the_tree) {
    const FakeEngine engine(socket);
    daemon::DeviceTree tree(socket);
    tree.publish({sample_device("uib0")});
    EXPECT_EQ(run({"ls", "/sys/class/infiniband//"}).output, "uib0\n");
    EXPECT_EQ(run({"cat", "/sys/class/infiniband/uib0/ports/1/state"}).output, "4: ACTIVE\n");
    EXPECT_EQ(run({"stat", "-c", "%F %t:%T", "/dev/infiniband/uverbs0"}).output,
              "character special file e7:c0\n");
    EXPECT_EQ(run({"test", "-c", "/dev/infiniband/uverbs0"}).status, 0);
    const Outcome python =
        run({"python3", "-c",
             "import os\n"
             "print(os.listdir('/sys/class/infiniband'), open('/sys/class/infiniband/uib0/fw_ver').read())\n"
             "fd = os.open('/dev/infiniband/uverbs0', os.O_RDWR)\n"
             "import stat, subprocess\n"
             "print(stat.S_ISCHR(os.fstat(fd).st_mode))\n"
             "subprocess.run(['true'], check=True)\n"
             "try: os.write(fd, b'x')\n"
             "except OSError as e: print(e.errno)\n"});
    EXPECT_EQ(python.output, "['uib0'] 0.1.0\n\nTrue\n22\n") << python.errors;
    EXPECT_EQ(engine.strays(), 0);
}

TEST_F(ProgramsTest, a_device_survives_exec) {
    const FakeEngine engine(socket);
    daemon::DeviceTree tree(socket);
    tree.publish({sample_device("uib0"), sample_device("uib1", 1)});
    const Outcome outcome =
        run({"python3", "-c",
             "import os\n"
             "fd = os.open('/dev/infiniband/uverbs1', os.O_RDWR)\n"
             "os.set_inheritable(fd, True)\n"
             "os.execvp('python3', ['python3', '-c', 'import os,sys; s = os.fstat(int(sys.argv[1])); "
             "print(os.major(s.st_rdev), os.minor(s.st_rdev))', str(fd)])\n"});
    EXPECT_EQ(outcome.output, "231 193\n") << outcome.errors;
}

TEST_F(ProgramsTest, programs_that_have_nothing_to_do_with_rdma_do_not_notice) {
    const FakeEngine engine(socket);
    daemon::DeviceTree tree(socket);
    tree.publish({sample_device("uib0")});
    const std::vector<std::vector<std::string>> commands = {
        {"ls", "-l", "/sys/class/net", "/dev/null"},
        {"ls", "/nonexistent"},
        {"cat", "/etc/passwd"},
        {"sh", "-c", "echo a | sed s/a/b/ > /dev/stderr; exec 5</etc/passwd; head -1 <&5; kill -9 $$"},
        {"python3", "-c",
         "import glob, tempfile, subprocess\n"
         "print(len(glob.glob('/usr/bin/*')))\n"
         "with tempfile.TemporaryFile() as f:\n  f.write(b'x' * 100000); print(f.tell())\n"
         "print(subprocess.run(['sh', '-c', 'echo $0'], capture_output=True).stdout)\n"},
        {"find", "/sys/class/net", "/usr/include/infiniband"},
    };
    for (const auto& command : commands) {
        const Outcome with = run(command), without = run_without(command);
        EXPECT_EQ(with.status, without.status) << command[0];
        EXPECT_EQ(with.output, without.output) << command[0];
        EXPECT_EQ(with.errors, without.errors) << command[0];
    }
    EXPECT_NE(run({"cat", "/proc/self/status"}).output.find("Name:\tcat"), std::string::npos);
}

TEST_F(ProgramsTest, without_an_engine_one_line_says_what_to_do) {
    const std::string line =
        "uib: no engine answers at " + socket + " (start one with `uibd`, or use `uib run -- COMMAND`)\n";
    EXPECT_NE(run({"ibv_devices"}).errors.find(line), std::string::npos);
    daemon::DeviceTree tree(socket);  // as a killed engine leaves it
    tree.publish({sample_device("uib0")});
    const Outcome outcome = run({"python3", "-c",
                                 "import os\n"
                                 "for i in range(3):\n"
                                 "  try: os.open('/dev/infiniband/uverbs0', os.O_RDWR)\n"
                                 "  except OSError as e: print(e.errno)\n"});
    EXPECT_EQ(outcome.output, "19\n19\n19\n");
    EXPECT_EQ(outcome.errors, line);
}

TEST_F(ProgramsTest, a_listening_socket_that_is_closed_counts_as_no_engine) {
    daemon::DeviceTree tree(socket);
    tree.publish({sample_device("uib0")});
    { const FakeEngine engine(socket); }
    EXPECT_NE(run({"sh", "-c", ": < /dev/infiniband/uverbs0"}).status, 0);
}

}  // namespace
}  // namespace uib::test

// The tree on disk: texts, changes, other devices of the host, other engines.
#include "engine/daemon/device_tree/device_tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <stdexcept>
#include <system_error>

#include "tests/unit/kernel_shim/fake_engine.h"

namespace uib::test {
namespace {

namespace fs = std::filesystem;

struct DeviceTreeTest : testing::Test {
    std::string text(const std::string& name) const { return file_text(tree_root + "/" + name); }
    std::string device(const std::string& name) const { return text("sys/class/infiniband/uib0/" + name); }
    ino_t inode(const std::string& name) const {
        struct stat status {};
        return stat((tree_root + "/sys/class/infiniband/uib0/" + name).c_str(), &status) == 0 ? status.st_ino
                                                                                              : 0;
    }
    void add_host_file(const std::string& name, const std::string& content) const {
        fs::create_directories(fs::path(host / name).parent_path());
        std::ofstream(host / name) << content;
    }

    TemporaryDirectory directory;
    TemporaryDirectory host;
    const std::string socket = directory / "engine.sock";
    const std::string tree_root = socket + ".tree";
};

TEST_F(DeviceTreeTest, shows_what_the_kernel_would_show) {
    daemon::DeviceTree tree(socket, host.path());
    tree.publish({sample_device("uib0")});
    EXPECT_EQ(device("node_type"), "1: CA\n");
    EXPECT_EQ(device("node_guid"), "0211:22ff:fe33:4400\n");
    EXPECT_EQ(device("device/modalias"), "uib:uib0\n");
    EXPECT_EQ(device("ports/1/state"), "4: ACTIVE\n");
    EXPECT_EQ(device("ports/1/phys_state"), "5: LinkUp\n");
    EXPECT_EQ(device("ports/1/lid"), "0x1\n");
    EXPECT_EQ(device("ports/1/cap_mask"), "0x00000010\n");
    EXPECT_EQ(device("ports/1/rate"), "100 Gb/sec (4X EDR)\n");
    EXPECT_EQ(device("ports/1/link_layer"), "InfiniBand\n");
    EXPECT_EQ(device("ports/1/gids/0"), "fe80:0000:0000:0000:0211:22ff:fe33:4400\n");
    EXPECT_EQ(device("ports/1/gids/1"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
    EXPECT_EQ(device("ports/1/gid_attrs/types/1"), "IB/RoCE v1\n");
    EXPECT_TRUE(fs::is_empty(tree_root + "/sys/class/infiniband/uib0/ports/1/gid_attrs/ndevs"));
    EXPECT_EQ(device("ports/1/pkeys/0"), "0xffff\n");
    EXPECT_EQ(device("ports/1/counters/port_rcv_packets"), "7\n");
    EXPECT_EQ(device("ports/1/hw_counters/out_of_sequence"), "0\n");
    EXPECT_EQ(text("sys/class/infiniband_verbs/abi_version"), "6\n");
    EXPECT_EQ(text("sys/class/infiniband_verbs/uverbs0/ibdev"), "uib0\n");
    EXPECT_EQ(text("sys/class/infiniband_verbs/uverbs0/dev"), "231:192\n");
    EXPECT_EQ(text("sys/class/infiniband_verbs/uverbs0/abi_version"), "1\n");
    EXPECT_TRUE(fs::is_regular_file(tree_root + "/dev/infiniband/uverbs0"));
}

TEST_F(DeviceTreeTest, can_be_read_by_everybody_whatever_the_umask) {
    const mode_t before = umask(077);
    daemon::DeviceTree tree(socket, host.path());
    tree.publish({sample_device("uib0")});
    umask(before);
    for (const auto& entry : fs::recursive_directory_iterator(tree_root)) {
        const auto wanted = entry.is_directory() ? fs::perms(0755) : fs::perms(0644);
        EXPECT_EQ(entry.status().permissions(), wanted) << entry.path();
    }
}

TEST_F(DeviceTreeTest, rewrites_only_files_whose_text_changes) {
    daemon::DeviceTree tree(socket, host.path());
    daemon::TreeDevice sample = sample_device("uib0");
    tree.publish({sample});
    const std::uint64_t written = tree.files_written();
    tree.publish({sample});
    tree.update_port("uib0", sample.ports[0]);
    tree.update_counters("uib0", 1, sample.ports[0].counters, sample.ports[0].hw_counters);
    EXPECT_EQ(tree.files_written(), written);

    const ino_t changed = inode("ports/1/counters/port_xmit_packets"),
                same = inode("ports/1/counters/port_rcv_packets");
    sample.ports[0].counters["port_xmit_packets"] = 6;
    tree.update_counters("uib0", 1, sample.ports[0].counters, sample.ports[0].hw_counters);
    EXPECT_EQ(tree.files_written(), written + 1);
    EXPECT_EQ(device("ports/1/counters/port_xmit_packets"), "6\n");
    EXPECT_NE(inode("ports/1/counters/port_xmit_packets"), changed);
    EXPECT_EQ(inode("ports/1/counters/port_rcv_packets"), same);
}

TEST_F(DeviceTreeTest, a_port_update_adds_changes_and_removes) {
    daemon::DeviceTree tree(socket, host.path());
    daemon::TreeDevice sample = sample_device("uib0");
    tree.publish({sample});
    daemon::TreePort port = sample.ports[0];
    port.state = 1;
    port.gids.pop_back();
    port.pkeys.push_back(0x8001);
    port.gid_types = {"RoCE v2"};
    port.gid_ndevs = {"eth0"};
    tree.update_port("uib0", port);
    EXPECT_EQ(device("ports/1/state"), "1: DOWN\n");
    EXPECT_EQ(device("ports/1/pkeys/2"), "0x8001\n");
    EXPECT_EQ(device("ports/1/gid_attrs/types/0"), "RoCE v2\n");
    EXPECT_EQ(device("ports/1/gid_attrs/ndevs/0"), "eth0\n");
    EXPECT_FALSE(fs::exists(tree_root + "/sys/class/infiniband/uib0/ports/1/gids/1"));
    EXPECT_EQ(device("node_type"), "1: CA\n");
    EXPECT_THROW(tree.update_port("uib1", port), std::invalid_argument);
    port.number = 2;
    EXPECT_THROW(tree.update_port("uib0", port), std::invalid_argument);
}

TEST_F(DeviceTreeTest, keeps_the_time_by_which_libibverbs_knows_a_device) {
    daemon::DeviceTree tree(socket, host.path());
    daemon::TreeDevice sample = sample_device("uib0");
    tree.publish({sample});
    const auto time = fs::last_write_time(tree_root + "/sys/class/infiniband/uib0");
    sample.node_desc = "renamed";
    tree.publish({sample});
    EXPECT_EQ(device("node_desc"), "renamed\n");
    EXPECT_EQ(fs::last_write_time(tree_root + "/sys/class/infiniband/uib0"), time);
}

TEST_F(DeviceTreeTest, numbers_stay_with_their_devices) {
    daemon::DeviceTree tree(socket, host.path());
    tree.publish({sample_device("b", 1), sample_device("a", 0)});
    EXPECT_EQ(tree.uverbs_number("a"), 0U);
    EXPECT_EQ(tree.uverbs_number("b"), 1U);
    tree.publish({sample_device("b", 1)});
    EXPECT_FALSE(fs::exists(tree_root + "/dev/infiniband/uverbs0"));
    EXPECT_FALSE(fs::exists(tree_root + "/sys/class/infiniband/a"));
    tree.publish({sample_device("c", 0), sample_device("b", 1)});
    EXPECT_EQ(tree.uverbs_number("b"), 1U);
    EXPECT_EQ(tree.uverbs_number("c"), 0U);
    EXPECT_THROW(tree.uverbs_number("a"), std::invalid_argument);
}

TEST_F(DeviceTreeTest, leaves_the_hosts_devices_visible_and_their_numbers_alone) {
    add_host_file("sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
    add_host_file("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n");
    add_host_file("sys/class/infiniband_verbs/abi_version", "6\n");
    add_host_file("dev/infiniband/uverbs0", "");
    add_host_file("dev/infiniband/rdma_cm", "");
    daemon::DeviceTree tree(socket, host.path());
    tree.publish({sample_device("uib0")});
    EXPECT_EQ(tree.uverbs_number("uib0"), 1U);
    EXPECT_EQ(text("sys/class/infiniband/mlx5_0/node_type"), "1: CA\n");
    EXPECT_EQ(text("sys/class/infiniband_verbs/uverbs0/ibdev"), "mlx5_0\n");
    EXPECT_EQ(text("sys/class/infiniband_verbs/uverbs1/dev"), "231:193\n");
    EXPECT_TRUE(fs::is_symlink(tree_root + "/dev/infiniband/uverbs0"));
    EXPECT_TRUE(fs::is_symlink(tree_root + "/dev/infiniband/rdma_cm"));
    EXPECT_FALSE(fs::is_symlink(tree_root + "/dev/infiniband/uverbs1"));
    EXPECT_THROW(tree.publish({sample_device("mlx5_0")}), std::invalid_argument);
}

TEST_F(DeviceTreeTest, replaces_a_dead_engines_tree_and_removes_its_own) {
    {
        daemon::DeviceTree first(socket, host.path());
        first.publish({sample_device("old")});
        {
            daemon::DeviceTree second(socket, host.path());
            second.publish({sample_device("uib0")});
            EXPECT_FALSE(fs::exists(tree_root + "/sys/class/infiniband/old"));
            EXPECT_EQ(device("node_type"), "1: CA\n");
        }
        EXPECT_FALSE(fs::exists(tree_root));
        daemon::DeviceTree third(socket, host.path());
        third.publish({sample_device("uib0")});
    }
    EXPECT_FALSE(fs::exists(tree_root));
}

TEST_F(DeviceTreeTest, an_engine_that_was_replaced_leaves_the_tree_alone) {
    daemon::DeviceTree second(socket, host.path());
    {
        daemon::DeviceTree first(socket, host.path());
        first.publish({sample_device("old")});
        second.publish({sample_device("uib0")});
    }
    EXPECT_EQ(device("node_type"), "1: CA\n");
}

TEST_F(DeviceTreeTest, refuses_to_remove_what_is_no_tree) {
    fs::create_directories(tree_root + "/precious");
    daemon::DeviceTree tree(socket, host.path());
    EXPECT_THROW(tree.publish({sample_device("uib0")}), std::system_error);
    EXPECT_TRUE(fs::exists(tree_root + "/precious"));
}

TEST_F(DeviceTreeTest, refuses_names_that_are_paths) {
    daemon::DeviceTree tree(socket, host.path());
    for (const char* name : {"", ".", "..", "a/b", "../../x"})
        EXPECT_THROW(tree.publish({sample_device(name)}), std::invalid_argument) << name;
    EXPECT_THROW(tree.publish({sample_device("uib0"), sample_device("uib0")}), std::invalid_argument);
}

}  // namespace
}  // namespace uib::test

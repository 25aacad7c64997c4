#include "engine/daemon/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/simulation/random.h"

namespace uib::daemon {
namespace {

std::string refusal(const char* text) {
    try {
        parse_config(text, "t.toml");
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(Config, EmptyFileMeansTwoDevices) {
    const Config config = parse_config("", "t.toml");
    EXPECT_EQ(config.devices, (std::vector<verbs::DeviceConfig>{"uib0", "uib1"}));
    EXPECT_EQ(config.log_level, "info");
}

TEST(Config, CountNamesDevices) {
    EXPECT_EQ(parse_config("[engine]\ndevices = 3\n", "t").devices,
              (std::vector<verbs::DeviceConfig>{"uib0", "uib1", "uib2"}));
}

TEST(Config, DevicesByName) {
    const Config config =
        parse_config("[engine]\nsocket='/x/y.sock'\n[[device]]\nname='a'\n[[device]]\nname='b-2'\n", "t");
    EXPECT_EQ(config.devices, (std::vector<verbs::DeviceConfig>{"a", "b-2"}));
    EXPECT_EQ(config.socket, "/x/y.sock");
}

TEST(Config, LinkLayerOfAllOrOfOneDevice) {
    using verbs::LinkLayer;
    using Devices = std::vector<verbs::DeviceConfig>;
    EXPECT_EQ(parse_config("[engine]\nlink_layer = 'ethernet'\n", "t").devices,
              (Devices{{"uib0", LinkLayer::kEthernet}, {"uib1", LinkLayer::kEthernet}}));
    EXPECT_EQ(parse_config("[engine]\nlink_layer = 'ethernet'\n[[device]]\nname='a'\n[[device]]\nname='b'\n"
                           "link_layer='infiniband'\n",
                           "t")
                  .devices,
              (Devices{{"a", LinkLayer::kEthernet}, {"b", LinkLayer::kInfiniBand}}));
    EXPECT_EQ(
        parse_config("[[device]]\nname='a'\nlink_layer='ethernet'\n[[device]]\nname='b'\n", "t").devices,
        (Devices{{"a", LinkLayer::kEthernet}, {"b", LinkLayer::kInfiniBand}}));
}

TEST(Config, TheEnginesNumberGoesToItsDevices) {
    EXPECT_EQ(parse_config("", "t").devices[1].engine, 0);
    EXPECT_EQ(parse_config("[engine]\nnumber = 7\n", "t").devices[1].engine, 7);
    EXPECT_EQ(parse_config("[engine]\nnumber = 7\n[[device]]\nname='a'\n", "t").devices[0].engine, 7);
    EXPECT_EQ(refusal("[engine]\nnumber = 65536\n"), "t.toml:2:10: number is 0 to 65535");
}

TEST(Config, OneSubnetIfNothingIsSaid) {
    const Config config = parse_config("", "t");
    ASSERT_EQ(config.subnets.size(), 1U);
    EXPECT_EQ(config.subnets[0].options.gid_prefix, 0xFE80000000000000U);
    EXPECT_EQ(config.subnets[0].options.lmc, 0);
    EXPECT_TRUE(config.subnets[0].manager);
}

TEST(Config, SubnetsAndWhoIsInThem) {
    const Config config = parse_config(
        "[[device]]\nname='x'\n[[device]]\nname='y'\nsubnet='b'\n"
        "[[subnet]]\nname='a'\nlmc=2\npriority=7\n[[subnet]]\nname='b'\nprefix='fec0:0:0:2::'\nmanager="
        "false\n",
        "t");
    ASSERT_EQ(config.subnets.size(), 2U);
    EXPECT_EQ(config.subnets[0].name, "a");
    EXPECT_EQ(config.subnets[0].options.lmc, 2);
    EXPECT_EQ(config.subnets[0].options.priority, 7);
    EXPECT_EQ(config.subnets[1].options.gid_prefix, 0xFEC0000000000002U);
    EXPECT_FALSE(config.subnets[1].manager);
    EXPECT_EQ(config.devices[0].subnet, "");
    EXPECT_EQ(config.devices[1].subnet, "b");
}

TEST(Config, ImpossibleSubnetsAreRefused) {
    EXPECT_EQ(refusal("[[subnet]]\nlmc = 8\n"), "t.toml:2:7: lmc is 0 to 7");
    EXPECT_NE(refusal("[[subnet]]\npriority = 16\n").find("priority is 0 to 15"), std::string::npos);
    EXPECT_NE(refusal("[[subnet]]\nprefix = 'ff00::'\n").find("a prefix is 64 bits"), std::string::npos);
    EXPECT_NE(refusal("[[subnet]]\nprefix = 'fec0::1'\n").find("a prefix is 64 bits"), std::string::npos);
    EXPECT_NE(refusal("[[subnet]]\nname='a'\n[[subnet]]\nname='b'\n").find("a prefix of its own"),
              std::string::npos);
    EXPECT_NE(refusal("[[subnet]]\n[[subnet]]\nprefix='fec0::'\n").find("twice"), std::string::npos);
    EXPECT_NE(refusal("[[device]]\nname='a'\nsubnet='c'\n").find("there is no subnet 'c'"),
              std::string::npos);
    EXPECT_NE(refusal("[subnet]\n").find("[[subnet]]"), std::string::npos);
    EXPECT_NE(refusal("[[subnet]]\nsm = 1\n").find("unknown key 'sm'"), std::string::npos);
}

TEST(Config, MistakesAreToldWithTheirPlace) {
    EXPECT_EQ(refusal("[[device]]\nname='a'\nlink_layer = 'wifi'\n"),
              "t.toml:3:14: link_layer is infiniband or ethernet");
    EXPECT_EQ(refusal("[engine]\nsokket = 'x'\n"), "t.toml:2:1: unknown key 'sokket' in [engine]");
    EXPECT_EQ(refusal("[engine]\ndevices = 'two'\n").substr(0, 12), "t.toml:2:11:");
    EXPECT_EQ(refusal("[engine]\ndevices = 0\n"), "t.toml:2:11: devices is 1 to 64");
    EXPECT_NE(refusal("[engine]\nlog_level = 'loud'\n").find("log_level is one of"), std::string::npos);
    EXPECT_NE(refusal("[[device]]\nname = '../etc'\n").find("a device name has letters"), std::string::npos);
    EXPECT_NE(refusal("[[device]]\nname='a'\n[[device]]\nname='a'\n").find("twice"), std::string::npos);
    EXPECT_NE(refusal("[engine]\ndevices=1\n[[device]]\nname='a'\n").find("either"), std::string::npos);
    EXPECT_NE(refusal("[[device]]\n").find("needs a name"), std::string::npos);
    EXPECT_EQ(refusal("engine = 3 4\n").substr(0, 9), "t.toml:1:");
}

TEST(Config, MissingFileIsToldByName) {
    try {
        load_config("/does/not/exist.toml");
        FAIL();
    } catch (const ConfigError& error) {
        EXPECT_STREQ(error.what(), "/does/not/exist.toml: cannot be read");
    }
}

// Whatever is written: a configuration, or one refusal that names file, line and column.
TEST(Config, AnyTextIsAConfigurationOrRefusedWithItsPlace) {
    const std::string whole =
        "[engine]\nsocket = '/x'\nlog_level = 'debug'\nnumber = 3\n[[device]]\nname = 'a'\nsubnet = 's'\n"
        "[[device]]\nname = 'b'\nlink_layer = 'ethernet'\n"
        "port = { link = 'roce', driver = 'af_packet', interface = 'eth0', vlan = 5, mtu = 1500 }\n"
        "[[subnet]]\nname = 's'\nprefix = 'fec0::'\nlmc = 2\npriority = 3\nmanager = true\n"
        "[[link]]\ndriver = 'memif'\ninterface = '/run/x'\nserver = true\nslots = 2\n"
        "peers = ['02:00:00:00:00:07']\nether_type = 0x88B5\n";
    ASSERT_EQ(refusal(whole.c_str()), "accepted");
    simulation::Random random(13);
    unsigned accepted = 0;
    unsigned refused = 0;
    for (int round = 0; round < 4000; ++round) {
        std::string text = whole;
        for (std::uint64_t i = random.draw(1, 4); i > 0; --i) {
            const std::size_t at = random.draw(0, text.size() - 1);
            switch (random.draw(0, 3)) {
                case 0:
                    text[at] = static_cast<char>(random.next());
                    break;
                case 1:
                    text[at] = static_cast<char>(random.draw(' ', '~'));
                    break;
                case 2:
                    text.erase(at, random.draw(1, 12));
                    break;
                default:
                    text.insert(at, whole.substr(random.draw(0, whole.size() - 1), random.draw(1, 20)));
            }
        }
        const std::string said = refusal(text.c_str());
        if (said == "accepted") {
            ++accepted;
            continue;
        }
        ++refused;
        unsigned line = 0;
        unsigned column = 0;
        ASSERT_EQ(std::sscanf(said.c_str(), "t.toml:%u:%u: ", &line, &column), 2) << said << "\n" << text;
        ASSERT_GT(line, 0U) << said;
        ASSERT_LE(line, 2U + static_cast<unsigned>(std::count(text.begin(), text.end(), '\n'))) << said;
    }
    EXPECT_GT(accepted, 10U);
    EXPECT_GT(refused, 1000U);
}

TEST(Config, RoceNeedsADriverOfHostInterfaces) {
    const auto port = [](const std::string& driver) {
        return refusal(
            ("[[device]]\nname='a'\nport={link='roce',interface='x',driver='" + driver + "'}\n").c_str());
    };
    EXPECT_EQ(port("af_packet"), "accepted");
    EXPECT_EQ(port("af_xdp"), "accepted");
    for (const char* driver : {"tap", "memif", "vhost", "virtio_user", "pci"})
        EXPECT_EQ(
            port(driver),
            "t.toml:3:6: RoCE has the addresses and neighbours of a host interface, by driver af_packet "
            "or af_xdp; " +
                std::string(driver) + " goes with a [[link]] table");
}

}  // namespace
}  // namespace uib::daemon

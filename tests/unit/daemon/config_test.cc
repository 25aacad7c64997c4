#include "engine/daemon/config.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace uib::daemon

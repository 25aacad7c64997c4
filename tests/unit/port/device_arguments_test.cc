#include "net/port/dpdk/device_arguments.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace uib::net::dpdk {
namespace {

FramePortOptions options(const std::string& driver, const std::string& where) {
    FramePortOptions out;
    out.name = "p";
    out.driver = driver;
    out.interface = where;
    return out;
}

/// The number behind `key=` in a device argument string.
unsigned value(const std::string& arguments, const std::string& key) {
    const auto at = arguments.find(key + "=");
    return at == std::string::npos ? 0
                                   : static_cast<unsigned>(std::stoul(arguments.substr(at + key.size() + 1)));
}

TEST(DeviceArguments, PacketRingFillsItsBlocksExactlyAndHoldsTheFrame) {
    for (const unsigned mtu : {576U, 1500U, 4200U, 9000U, 32000U}) {
        const DeviceArguments got = device_arguments(options("af_packet", "eth0"), 3, mtu);
        const unsigned block = value(got.arguments, "blocksz"), frame = value(got.arguments, "framesz"),
                       count = value(got.arguments, "framecnt");
        EXPECT_EQ(got.arguments.rfind("net_af_packet3,iface=eth0,", 0), 0U);
        EXPECT_EQ(block % 4096, 0U);
        EXPECT_EQ(block % frame, 0U) << mtu;
        EXPECT_GE(frame, mtu + 18 + 48) << "packet header, Ethernet header with tag";
        EXPECT_EQ(count % (block / frame), 0U) << mtu;
        EXPECT_GE(got.room, frame + 128U);
        EXPECT_TRUE(got.host_interface);
    }
    EXPECT_THROW(device_arguments(options("af_packet", "lo"), 0, 65536), std::invalid_argument);
}

TEST(DeviceArguments, XdpRefusesWhatItWouldLose) {
    EXPECT_NO_THROW(device_arguments(options("af_xdp", "eth0"), 0, 2200));
    EXPECT_THROW(device_arguments(options("af_xdp", "eth0"), 0, 4200), std::invalid_argument);
}

TEST(DeviceArguments, XdpProgramIsNamedUnlessItWouldMissOurFrames) {
    const auto arguments = [](std::uint16_t ether_type, const std::string& extra) {
        FramePortOptions port = options("af_xdp", "eth0");
        port.ether_type = ether_type;
        port.extra = extra;
        return device_arguments(port, 0, 1500, "/p.o").arguments;
    };
    EXPECT_EQ(arguments(0, ""), "net_af_xdp0,iface=eth0,xdp_prog=/p.o");
    EXPECT_EQ(arguments(0x88B5, ""), "net_af_xdp0,iface=eth0,xdp_prog=/p.o");
    EXPECT_EQ(arguments(0x88B6, ""), "net_af_xdp0,iface=eth0");
    EXPECT_EQ(arguments(0, "xdp_prog=/own.o"), "net_af_xdp0,iface=eth0,xdp_prog=/own.o");
}

TEST(DeviceArguments, OtherDrivers) {
    FramePortOptions memif = options("memif", "/run/m.sock");
    EXPECT_NE(device_arguments(memif, 1, 4200).arguments.find("role=client,id=0,socket=/run/m.sock"),
              std::string::npos);
    memif.server = true;
    EXPECT_NE(device_arguments(memif, 1, 4200).arguments.find("role=server"), std::string::npos);
    EXPECT_EQ(device_arguments(options("pci", "0000:01:00.0"), 1, 1500).arguments, "0000:01:00.0");
    EXPECT_TRUE(device_arguments(options("pci", "0000:01:00.0"), 1, 1500).pci);
    FramePortOptions extra = options("tap", "t0");
    extra.extra = "mac=fixed";
    EXPECT_EQ(device_arguments(extra, 2, 1500).arguments, "net_tap2,iface=t0,mac=fixed");
    EXPECT_EQ(device_arguments(options("vhost", "/v"), 2, 1500).arguments, "net_vhost2,iface=/v,client=1");
    FramePortOptions vhost = options("vhost", "/v");
    vhost.server = true;
    EXPECT_EQ(device_arguments(vhost, 2, 1500).arguments, "net_vhost2,iface=/v");
    EXPECT_EQ(device_arguments(options("virtio_user", "/v"), 2, 1500).arguments,
              "net_virtio_user2,path=/v,queue_size=1024");
    EXPECT_THROW(device_arguments(options("af_paket", "eth0"), 0, 1500), std::invalid_argument);
}

TEST(DeviceArguments, FramesAreNoLongerThanTheDriverCarries) {
    const std::pair<const char*, unsigned> most[] = {
        {"tap", 1500}, {"memif", 16384 - 18}, {"vhost", 65389}, {"virtio_user", 65389}};
    for (const auto& [driver, mtu] : most) {
        EXPECT_NO_THROW(device_arguments(options(driver, "x"), 0, mtu)) << driver;
        EXPECT_THROW(device_arguments(options(driver, "x"), 0, mtu + 1), std::invalid_argument) << driver;
        EXPECT_LE(default_mtu(driver), mtu);
    }
}

TEST(DeviceArguments, VirtioUserIsNoServer) {
    FramePortOptions virtio = options("virtio_user", "/v");
    virtio.server = true;
    EXPECT_THROW(device_arguments(virtio, 0, 1500), std::invalid_argument);
}

}  // namespace
}  // namespace uib::net::dpdk

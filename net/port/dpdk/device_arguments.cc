#include "net/port/dpdk/device_arguments.h"

#include <bit>
#include <stdexcept>

namespace uib::net::dpdk {

namespace {

constexpr std::uint32_t kHeadroom = 128;       // RTE_PKTMBUF_HEADROOM of Debian's build
constexpr std::uint32_t kEthernetHeader = 18;  // with a VLAN tag
constexpr std::uint32_t kPacketHeader = 96;    // struct tpacket2_hdr and the address behind it, rounded up
constexpr std::uint32_t kBlock = 32768;        // of a packet ring
constexpr std::uint32_t kRingFrames = 1024;    // rides out a receiver that loses its core for a while
constexpr std::uint32_t kRingBytes = 16384;    // memif buffer
constexpr std::uint32_t kLongestFrame = 0xFFFF - kHeadroom;
constexpr std::uint32_t kTapMtu = 1500;     // the driver's own check lets no more through
constexpr std::uint32_t kSocketMtu = 4224;  // packets of an IB MTU of 4096 fit, with either encapsulation
constexpr std::uint32_t kXdpRoom = 3648;    // af_xdp: buffer, headroom and frame must fit a page
constexpr std::uint32_t kXdpFrame = 3400;
constexpr std::uint16_t kXdpProgramType = 0x88B5;  // the program's native IB frames, beside RoCE

// The driver lays frames end to end through the ring, so they must fill its blocks exactly.
std::string packet_ring(const std::string& interface, std::uint32_t frame, DeviceArguments& out) {
    const std::uint32_t size = std::bit_ceil(frame + kPacketHeader);
    if (size > kBlock)
        throw std::invalid_argument("driver af_packet carries frames of at most " +
                                    std::to_string(kBlock - kPacketHeader) + " bytes; set a smaller mtu");
    out.room = size + kHeadroom;
    return "iface=" + interface + ",blocksz=" + std::to_string(kBlock) + ",framesz=" + std::to_string(size) +
           ",framecnt=" + std::to_string(kRingFrames);
}

void check_frame(const std::string& driver, std::uint32_t frame, std::uint32_t most, const char* instead) {
    if (frame <= most) return;
    throw std::invalid_argument("driver " + driver + " carries frames of at most " + std::to_string(most) +
                                " bytes; set mtu to " + std::to_string(most - kEthernetHeader) + " or less" +
                                instead);
}

}  // namespace

std::uint32_t default_mtu(const std::string& driver) {
    return driver == "tap" ? kTapMtu : kSocketMtu;
}

bool over_socket(const std::string& driver) {
    return driver == "memif" || driver == "vhost" || driver == "virtio_user";
}

DeviceArguments device_arguments(const FramePortOptions& options, unsigned number, std::uint32_t mtu,
                                 const std::string& xdp_program) {
    DeviceArguments out;
    const std::uint32_t frame = mtu + kEthernetHeader;
    const std::string& where = options.interface;
    std::string keys;
    out.room = frame + kHeadroom;
    if (options.driver == "af_packet") {
        out.host_interface = true;
        keys = packet_ring(where, frame, out);
    } else if (options.driver == "af_xdp") {
        check_frame(options.driver, frame, kXdpFrame, ", or use af_packet");
        out.host_interface = true;
        out.room = kXdpRoom;
        keys = "iface=" + where;
        const bool known_type = options.ether_type == 0 || options.ether_type == kXdpProgramType;
        if (!xdp_program.empty() && known_type && options.extra.find("xdp_prog=") == std::string::npos)
            keys += ",xdp_prog=" + xdp_program;
    } else if (options.driver == "tap") {
        check_frame(options.driver, frame, kTapMtu + kEthernetHeader, "");
        keys = "iface=" + where;
    } else if (options.driver == "memif") {
        check_frame(options.driver, frame, kRingBytes, "");
        keys = std::string("role=") + (options.server ? "server" : "client") + ",id=0,socket=" + where +
               ",socket-abstract=no,rsize=10,bsize=" + std::to_string(kRingBytes);
    } else if (options.driver == "vhost") {
        check_frame(options.driver, frame, kLongestFrame, "");
        keys = "iface=" + where + (options.server ? "" : ",client=1");
    } else if (options.driver == "virtio_user") {
        check_frame(options.driver, frame, kLongestFrame, "");
        // The driver's own server mode blocks the start until somebody has come.
        if (options.server)
            throw std::invalid_argument("driver virtio_user cannot be the server; the vhost end can");
        keys = "path=" + where + ",queue_size=1024";
    } else if (options.driver == "pci") {
        out.pci = true;
        out.device = where;
        out.arguments = where;
    } else {
        throw std::invalid_argument("unknown driver '" + options.driver +
                                    "'; one of af_packet, af_xdp, tap, memif, vhost, virtio_user, pci");
    }
    if (!out.pci) {
        out.device = "net_" + options.driver + std::to_string(number);
        out.arguments = out.device + "," + keys;
    }
    if (!options.extra.empty()) out.arguments += "," + options.extra;
    return out;
}

}  // namespace uib::net::dpdk

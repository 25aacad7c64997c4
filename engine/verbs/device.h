// A device: one channel adapter with one port on the internal fabric, InfiniBand or Ethernet, its limits and
// its port's attributes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/ipc/control_device.h"
#include "engine/management/node.h"
#include "engine/management/subnet_manager.h"
#include "engine/transport/queue_pair.h"
#include "engine/transport/static_rate.h"
#include "engine/verbs/flow_table.h"
#include "net/encap/uplink.h"
#include "net/fabric/ethernet_switch.h"
#include "net/fabric/internal_switch.h"
#include "net/port/frame_port.h"
#include "net/wire/packet.h"

namespace uib::verbs {

/// Limits that every device has; each is true (tests/integration exhausts them).
struct Limits {
    static constexpr std::uint32_t kMaxQp = 131072;
    static constexpr std::uint32_t kMaxQpWr = 32768;
    static constexpr std::uint32_t kMaxSge = 32;
    static constexpr std::uint32_t kMaxInline = 1024;
    static constexpr std::uint32_t kMaxCq = 131072;
    static constexpr std::uint32_t kMaxCqe = 4 << 20;
    static constexpr std::uint32_t kMaxMr = 1 << 20;
    static constexpr std::uint32_t kMaxPd = 65536;
    static constexpr std::uint32_t kMaxMw = 1 << 20;
    static constexpr std::uint32_t kMaxRdAtomic = 32;
    static constexpr std::uint32_t kMaxSrq = 65536;
    static constexpr std::uint32_t kMaxSrqWr = 32768;
    static constexpr std::uint32_t kMaxXrcd =
        4096;  ///< of one context; each may be a descriptor of the engine
    static constexpr std::uint32_t kMaxMulticastGroups = 8192;
    static constexpr std::uint32_t kMaxMulticastQps = 240;
    static constexpr std::uint32_t kMaxAh = 1 << 24;
    static constexpr std::uint64_t kMaxDm = std::uint64_t{64} << 20;
    static constexpr std::uint32_t kMaxDmObjects = 4096;
    static constexpr std::uint32_t kMaxChannels =
        4096;  ///< of one context; each is a descriptor of the engine
    static constexpr std::uint32_t kMaxWq = 16384;
    static constexpr std::uint32_t kMaxRwqTables = 4096;
    static constexpr std::uint32_t kMaxFlows = 4096;  ///< of one device; each frame looks through them
    static constexpr std::uint32_t kGids = 8;
};

/// Values of ibv_port_attr::link_layer.
enum class LinkLayer : std::uint8_t { kInfiniBand = 1, kEthernet = 2 };

/// How a device's port leaves the engine: by RoCE v2.
struct PortConfig {
    net::FramePortOptions frames;
    std::optional<std::uint16_t> vlan{};
    bool operator==(const PortConfig&) const = default;
};

/// What the configuration says of a subnet that the engine's switch makes up or is part of.
struct SubnetConfig {
    std::string name;
    management::SubnetOptions options{};
    bool manager = true;  ///< the built-in subnet manager runs
};

/// An Ethernet port whose peers' engines are joined to the first subnet's switch by InfiniBand links.
struct LinkConfig {
    net::FramePortOptions frames;
    std::vector<net::MacAddress> peers;  ///< empty: whoever is found
    unsigned slots = 4;                  ///< links at most
    bool operator==(const LinkConfig&) const = default;
};

/// What the configuration says of a device.
struct DeviceConfig {
    DeviceConfig(const char* device_name, LinkLayer layer = LinkLayer::kInfiniBand)
        : name(device_name), link_layer(layer) {}
    DeviceConfig(std::string device_name, LinkLayer layer = LinkLayer::kInfiniBand)
        : name(std::move(device_name)), link_layer(layer) {}
    bool operator==(const DeviceConfig&) const = default;

    std::string name;
    LinkLayer link_layer;
    std::optional<PortConfig> port;  ///< none: the port is on the internal fabric only
    std::string subnet;              ///< of an InfiniBand device; empty: the first one
    std::uint16_t engine = 0;  ///< of the engine among those that it shares subnets with: part of the GUID
};

/// What subnet management has set at an InfiniBand port.
struct SubnetPort {
    net::Lid lid = 0;
    net::Lid sm_lid = 0;
    std::uint8_t lmc = 0;
    std::uint8_t sm_sl = 0;
    std::uint8_t subnet_timeout = 0;
    std::uint8_t state = 1;  ///< ibv_port_state
    std::uint8_t mtu = 5;    ///< ibv_mtu of the links
    std::uint32_t capabilities = 0;
    std::uint32_t reregistrations = 0;  ///< how often registering anew has been asked for
    bool operator==(const SubnetPort&) const = default;
};

/// On an Ethernet device the transport is RoCE: its port has no LID, a GID made of its MAC address, and every
/// path needs a GRH. Between devices of one engine packets travel by internal LIDs all the same, which the
/// adapter finds by the DGID (EthernetPaths); frames of raw packet QPs travel by MAC address and flow rules.
class Device {
  public:
    /// `lid` is an Ethernet port's address on the internal fabric; an InfiniBand port gets its LID later.
    /// `subnet` is the number of its subnet.
    Device(DeviceConfig config, std::uint32_t index, net::Lid lid, net::InternalSwitch& fabric,
           std::uint8_t subnet = 0);

    [[nodiscard]] const std::string& name() const { return config_.name; }
    [[nodiscard]] std::uint32_t index() const { return index_; }
    [[nodiscard]] net::Lid lid() const { return ethernet() ? lid_ : subnet_.lid; }
    /// Of an InfiniBand port.
    [[nodiscard]] const SubnetPort& subnet() const { return subnet_; }
    [[nodiscard]] std::uint8_t subnet_number() const { return subnet_number_; }
    void follow_subnet(const management::NodePort& port);
    [[nodiscard]] bool ethernet() const { return config_.link_layer == LinkLayer::kEthernet; }
    /// Of the port, if it is an Ethernet port.
    [[nodiscard]] const net::MacAddress& mac() const { return mac_; }
    FlowTable& flows() { return flows_; }
    [[nodiscard]] std::uint64_t guid() const { return guid_; }
    [[nodiscard]] net::InternalSwitch::PortIndex port() const { return port_; }
    [[nodiscard]] const std::vector<net::Gid>& gids() const { return gids_; }
    [[nodiscard]] const std::vector<std::uint16_t>& pkeys() const { return pkeys_; }

    [[nodiscard]] ipc::DeviceLimits limits() const;
    [[nodiscard]] ipc::PortAttributes port_attributes() const;
    [[nodiscard]] const net::PortCounters& counters() const { return fabric_.counters(port_); }

    /// The port's way out of the engine; nullptr if it has none.
    [[nodiscard]] net::Uplink* uplink() const { return uplink_.get(); }
    /// Gives the port a way out: MAC, GUID, GIDs, MTU and state are the uplink's from now on.
    void attach(std::unique_ptr<net::Uplink> uplink);
    /// Takes the uplink's GIDs over. A GID keeps its index as long as it exists (users remember indices).
    void follow_gids();
    /// The host interface under the port, as the configuration names it; empty on the internal fabric.
    [[nodiscard]] std::string host_interface() const {
        return config_.port ? config_.port->frames.interface : std::string();
    }
    [[nodiscard]] bool active() const {
        return (ethernet() ? !link_down : subnet_.state == management::kStateActive) &&
               (uplink_ == nullptr || uplink_->active());
    }
    /// A fault rule holds the link down. At an InfiniBand port subnet management shows it.
    bool link_down = false;
    std::uint64_t link_downed = 0;  ///< how often one has taken it down

    /// Congestion notification (Annex A17.9).
    struct Congestion {
        std::uint64_t marked = 0;  ///< packets that came in marked
        std::uint64_t sent = 0;    ///< notifications
        std::uint64_t received = 0;
        transport::Time next_at = 0;  ///< none is sent before
    };
    Congestion congestion;

    /// What destroyed QPs had counted.
    transport::QpCounters retired;
    /// Of the port, for all QPs (9.11).
    transport::StaticRate static_rate;

  private:
    DeviceConfig config_;
    std::uint32_t index_;
    net::Lid lid_;
    SubnetPort subnet_;
    std::uint8_t subnet_number_;
    std::uint64_t guid_;
    net::MacAddress mac_;
    net::InternalSwitch& fabric_;
    net::InternalSwitch::PortIndex port_;
    std::vector<net::Gid> gids_;  ///< Limits::kGids entries; unused ones are zero
    std::vector<std::uint16_t> pkeys_;
    FlowTable flows_;
    std::unique_ptr<net::Uplink> uplink_;
};

}  // namespace uib::verbs

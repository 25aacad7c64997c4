#include "engine/daemon/config.h"

#include <arpa/inet.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "engine/ipc/control.h"

namespace uib::daemon {

namespace {

constexpr std::array kLogLevels = {"trace", "debug", "info", "warning", "error", "off"};

[[noreturn]] void refuse(const std::string& file, const toml::source_region& where, const std::string& what) {
    std::ostringstream message;
    message << file << ":" << where.begin.line << ":" << where.begin.column << ": " << what;
    throw ConfigError(message.str());
}

/// Keys outside `known` are refused.
void check_keys(const std::string& file, const toml::table& table,
                std::initializer_list<std::string_view> known, const std::string& where) {
    for (const auto& [key, value] : table)
        if (std::find(known.begin(), known.end(), key.str()) == known.end())
            refuse(file, key.source(), "unknown key '" + std::string(key.str()) + "' in " + where);
}

template <typename T>
T value_of(const std::string& file, const toml::node& node, const char* expected) {
    if (const auto value = node.value_exact<T>()) return *value;
    refuse(file, node.source(), std::string("expected ") + expected);
}

/// What can be a file name in sysfs and fits the protocol.
bool good_device_name(const std::string& name) {
    const auto good = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    };
    return !name.empty() && name.size() < ipc::kDeviceNameMax && std::all_of(name.begin(), name.end(), good);
}

verbs::LinkLayer read_link_layer(const std::string& file, const toml::node& node) {
    const auto name = value_of<std::string>(file, node, "a string");
    if (name == "infiniband") return verbs::LinkLayer::kInfiniBand;
    if (name == "ethernet") return verbs::LinkLayer::kEthernet;
    refuse(file, node.source(), "link_layer is infiniband or ethernet");
}

/// What [engine] says of devices that do not say it themselves.
verbs::LinkLayer default_link_layer(const std::string& file, const toml::table& root) {
    const toml::node* node = root["engine"]["link_layer"].node();
    return node == nullptr ? verbs::LinkLayer::kInfiniBand : read_link_layer(file, *node);
}

void read_engine(const std::string& file, const toml::table& table, Config& config) {
    check_keys(file, table, {"socket", "log_level", "devices", "number", "link_layer"}, "[engine]");
    if (const toml::node* node = table.get("socket"))
        config.socket = value_of<std::string>(file, *node, "a string");
    if (const toml::node* node = table.get("log_level")) {
        config.log_level = value_of<std::string>(file, *node, "a string");
        if (std::find(kLogLevels.begin(), kLogLevels.end(), config.log_level) == kLogLevels.end())
            refuse(file, node->source(), "log_level is one of trace, debug, info, warning, error, off");
    }
    if (const toml::node* node = table.get("devices")) {
        const auto count = value_of<std::int64_t>(file, *node, "a number of devices");
        if (count < 1 || count > kMaxDevices)
            refuse(file, node->source(), "devices is 1 to " + std::to_string(kMaxDevices));
        config.devices.clear();
        for (std::int64_t i = 0; i < count; ++i) config.devices.push_back("uib" + std::to_string(i));
    }
}

constexpr std::array kDrivers = {"af_packet", "af_xdp", "tap", "memif", "vhost", "virtio_user", "pci"};
constexpr std::uint16_t kIbEtherType = 0x88B5;  // local experimental
constexpr std::size_t kMaxSubnets = 16;
constexpr std::size_t kMaxLinks = 8;
constexpr std::int64_t kMaxSlots = 32;
constexpr std::int64_t kMinMtu = 300;
constexpr std::int64_t kMaxMtu = 65535;

/// An integer key within bounds.
std::int64_t read_number(const std::string& file, const toml::node& node, std::int64_t low, std::int64_t high,
                         const char* what) {
    const auto value = value_of<std::int64_t>(file, node, what);
    if (value < low || value > high)
        refuse(file, node.source(),
               std::string(what) + " is " + std::to_string(low) + " to " + std::to_string(high));
    return value;
}

/// Driver, interface and what else a frame port can be told, of a [[device]]'s port or a [[link]].
net::FramePortOptions read_frames(const std::string& file, const toml::table& table,
                                  const std::string& name) {
    net::FramePortOptions frames;
    frames.name = name;
    frames.driver = "af_packet";
    if (const toml::node* driver = table.get("driver")) {
        frames.driver = value_of<std::string>(file, *driver, "a string");
        if (std::find(kDrivers.begin(), kDrivers.end(), frames.driver) == kDrivers.end())
            refuse(file, driver->source(),
                   "driver is one of af_packet, af_xdp, tap, memif, vhost, virtio_user, pci");
    }
    const toml::node* interface = table.get("interface");
    if (interface == nullptr) refuse(file, table.source(), "a port needs an interface");
    frames.interface = value_of<std::string>(file, *interface, "a string");
    if (const toml::node* mtu = table.get("mtu"))
        frames.mtu = static_cast<std::uint32_t>(read_number(file, *mtu, kMinMtu, kMaxMtu, "mtu"));
    if (const toml::node* extra = table.get("extra"))
        frames.extra = value_of<std::string>(file, *extra, "a string");
    if (const toml::node* server = table.get("server"))
        frames.server = value_of<bool>(file, *server, "true or false");
    return frames;
}

verbs::PortConfig read_port(const std::string& file, const toml::node& node, const std::string& device) {
    const toml::table* table = node.as_table();
    if (table == nullptr)
        refuse(file, node.source(), "expected port = { link = ..., driver = ..., interface = ... }");
    check_keys(file, *table, {"link", "driver", "interface", "mtu", "vlan", "extra", "server"},
               "a device's port");
    const toml::node* link = table->get("link");
    if (link == nullptr) refuse(file, node.source(), "a port needs a link: \"roce\"");
    if (const auto name = value_of<std::string>(file, *link, "a string"); name != "roce")
        refuse(file, link->source(),
               name == "ib"
                   ? "an ib link joins the engine's switch, not one device: write it as a [[link]] table"
                   : "link is roce");
    verbs::PortConfig port;
    port.frames = read_frames(file, *table, device);
    if (port.frames.driver != "af_packet" && port.frames.driver != "af_xdp")
        refuse(file, node.source(),
               "RoCE has the addresses and neighbours of a host interface, by driver af_packet or af_xdp; " +
                   port.frames.driver + " goes with a [[link]] table");
    if (const toml::node* vlan = table->get("vlan"))
        port.vlan = static_cast<std::uint16_t>(read_number(file, *vlan, 1, 4094, "vlan"));
    return port;
}

net::MacAddress read_mac(const std::string& file, const toml::node& node) {
    const auto text = value_of<std::string>(file, node, "a MAC address as a string");
    std::array<unsigned, 6> parts{};
    int used = 0;
    const int got = std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%n", &parts[0], &parts[1], &parts[2],
                                &parts[3], &parts[4], &parts[5], &used);
    if (got != 6 || static_cast<std::size_t>(used) != text.size() || (parts[0] & 1) != 0)
        refuse(file, node.source(), "expected the MAC address of one host: \"02:00:00:00:00:07\"");
    net::MacAddress mac;
    std::copy(parts.begin(), parts.end(), mac.begin());
    return mac;
}

void read_links(const std::string& file, const toml::node& node, Config& config) {
    const toml::array* array = node.as_array();
    if (array == nullptr || array->empty() || !array->is_array_of_tables())
        refuse(file, node.source(), "expected [[link]] tables");
    if (array->size() > kMaxLinks)
        refuse(file, node.source(), "at most " + std::to_string(kMaxLinks) + " links");
    for (const toml::node& element : *array) {
        const toml::table& table = *element.as_table();
        check_keys(file, table,
                   {"driver", "interface", "mtu", "extra", "server", "ether_type", "peers", "slots"},
                   "[[link]]");
        verbs::LinkConfig link;
        link.frames = read_frames(file, table, "link" + std::to_string(config.links.size()));
        link.frames.ether_type = kIbEtherType;
        if (const toml::node* type = table.get("ether_type"))
            link.frames.ether_type =
                static_cast<std::uint16_t>(read_number(file, *type, 0x0600, 0xFFFF, "ether_type"));
        if (const toml::node* slots = table.get("slots"))
            link.slots = static_cast<unsigned>(read_number(file, *slots, 1, kMaxSlots, "slots"));
        if (const toml::node* peers = table.get("peers")) {
            if (peers->as_array() == nullptr)
                refuse(file, peers->source(), "expected a list of MAC addresses");
            for (const toml::node& peer : *peers->as_array()) link.peers.push_back(read_mac(file, peer));
            link.slots = std::max(link.slots, static_cast<unsigned>(link.peers.size()));
        }
        config.links.push_back(std::move(link));
    }
}

/// The upper half of an IPv6 address whose lower half is zero.
std::uint64_t read_prefix(const std::string& file, const toml::node& node) {
    const auto text = value_of<std::string>(file, node, "a string");
    std::array<std::uint8_t, 16> address{};
    std::uint64_t halves[2] = {0, 0};
    const bool parsed = ::inet_pton(AF_INET6, text.c_str(), address.data()) == 1;
    for (std::size_t i = 0; i < address.size(); ++i) halves[i / 8] = halves[i / 8] << 8 | address[i];
    if (!parsed || halves[0] == 0 || halves[1] != 0 || address[0] == 0xFF)
        refuse(file, node.source(), "a prefix is 64 bits in the form of an IPv6 address: \"fec0:0:0:1::\"");
    return halves[0];
}

void read_subnets(const std::string& file, const toml::node& node, Config& config) {
    const toml::array* array = node.as_array();
    if (array == nullptr || array->empty() || !array->is_array_of_tables())
        refuse(file, node.source(), "expected [[subnet]] tables");
    if (array->size() > kMaxSubnets)
        refuse(file, node.source(), "at most " + std::to_string(kMaxSubnets) + " subnets");
    config.subnets.clear();
    for (const toml::node& element : *array) {
        const toml::table& table = *element.as_table();
        check_keys(file, table, {"name", "prefix", "lmc", "priority", "manager"}, "[[subnet]]");
        verbs::SubnetConfig subnet;
        if (const toml::node* name = table.get("name"))
            subnet.name = value_of<std::string>(file, *name, "a string");
        if (const toml::node* prefix = table.get("prefix"))
            subnet.options.gid_prefix = read_prefix(file, *prefix);
        if (const toml::node* lmc = table.get("lmc"))
            subnet.options.lmc = static_cast<std::uint8_t>(read_number(file, *lmc, 0, 7, "lmc"));
        if (const toml::node* priority = table.get("priority"))
            subnet.options.priority =
                static_cast<std::uint8_t>(read_number(file, *priority, 0, 15, "priority"));
        if (const toml::node* manager = table.get("manager"))
            subnet.manager = value_of<bool>(file, *manager, "true or false");
        for (const verbs::SubnetConfig& other : config.subnets) {
            if (other.name == subnet.name)
                refuse(file, element.source(), "subnet '" + subnet.name + "' is there twice");
            if (other.options.gid_prefix == subnet.options.gid_prefix)
                refuse(file, element.source(), "each subnet needs a prefix of its own");
        }
        config.subnets.push_back(std::move(subnet));
    }
}

std::string read_subnet_of(const std::string& file, const toml::node& node, const Config& config) {
    auto name = value_of<std::string>(file, node, "a string");
    if (std::none_of(config.subnets.begin(), config.subnets.end(),
                     [&](const verbs::SubnetConfig& subnet) { return subnet.name == name; }))
        refuse(file, node.source(), "there is no subnet '" + name + "'");
    return name;
}

void read_devices(const std::string& file, const toml::node& node, verbs::LinkLayer link_layer,
                  Config& config) {
    const toml::array* array = node.as_array();
    if (array == nullptr || array->empty() || !array->is_array_of_tables())
        refuse(file, node.source(), "expected [[device]] tables");
    if (array->size() > kMaxDevices)
        refuse(file, node.source(), "at most " + std::to_string(kMaxDevices) + " devices");
    config.devices.clear();
    for (const toml::node& element : *array) {
        const toml::table& table = *element.as_table();
        check_keys(file, table, {"name", "link_layer", "port", "subnet"}, "[[device]]");
        const toml::node* name_node = table.get("name");
        if (name_node == nullptr) refuse(file, element.source(), "a device needs a name");
        const auto name = value_of<std::string>(file, *name_node, "a string");
        if (!good_device_name(name))
            refuse(file, name_node->source(),
                   "a device name has letters, digits, '_' and '-', at most 63 of them");
        if (std::any_of(config.devices.begin(), config.devices.end(),
                        [&](const verbs::DeviceConfig& other) { return other.name == name; }))
            refuse(file, name_node->source(), "device '" + name + "' is there twice");
        const toml::node* layer_node = table.get("link_layer");
        config.devices.emplace_back(name,
                                    layer_node == nullptr ? link_layer : read_link_layer(file, *layer_node));
        if (const toml::node* subnet = table.get("subnet"))
            config.devices.back().subnet = read_subnet_of(file, *subnet, config);
        const toml::node* port_node = table.get("port");
        if (port_node == nullptr) continue;
        verbs::DeviceConfig& device = config.devices.back();
        device.port = read_port(file, *port_node, name);
        if (layer_node != nullptr && device.link_layer != verbs::LinkLayer::kEthernet)
            refuse(file, layer_node->source(), "a RoCE port goes with link_layer ethernet");
        device.link_layer = verbs::LinkLayer::kEthernet;
    }
}

}  // namespace

Config parse_config(std::string_view text, const std::string& name) {
    Config config;
    std::uint16_t engine_number = 0;
    try {
        const toml::table root = toml::parse(text, name);
        check_keys(name, root, {"engine", "device", "subnet", "link"}, "the file");
        if (const toml::node* subnet = root.get("subnet")) read_subnets(name, *subnet, config);
        const toml::node* engine = root.get("engine");
        const toml::node* device = root.get("device");
        if (engine != nullptr) {
            if (!engine->is_table()) refuse(name, engine->source(), "expected a table [engine]");
            read_engine(name, *engine->as_table(), config);
            for (verbs::DeviceConfig& made : config.devices) made.link_layer = default_link_layer(name, root);
            if (device != nullptr && engine->as_table()->contains("devices"))
                refuse(name, device->source(), "give either engine.devices or [[device]] tables");
        }
        if (const toml::node* number = root["engine"]["number"].node()) {
            const std::int64_t value = read_number(name, *number, 0, 0xFFFF, "number");
            engine_number = static_cast<std::uint16_t>(value);
            config.numbered = true;
        }
        if (const toml::node* link = root.get("link")) read_links(name, *link, config);
        if (device != nullptr) read_devices(name, *device, default_link_layer(name, root), config);
    } catch (const toml::parse_error& error) {
        refuse(name, error.source(), std::string(error.description()));
    }
    for (verbs::DeviceConfig& device : config.devices) device.engine = engine_number;
    return config;
}

Config load_config(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    if (!file || !(text << file.rdbuf())) throw ConfigError(path + ": cannot be read");
    return parse_config(text.str(), path);
}

}  // namespace uib::daemon

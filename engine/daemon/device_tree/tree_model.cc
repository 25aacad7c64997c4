#include "engine/daemon/device_tree/tree_model.h"

#include <cstdarg>
#include <cstdio>

#include "net/wire/text.h"

namespace uib::daemon {
namespace {

/// printf into a string; what is printed here is short.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
    char text[128];
    va_list arguments;
    va_start(arguments, pattern);
    std::vsnprintf(text, sizeof text, pattern, arguments);
    va_end(arguments);
    return text;
}

std::string guid_text(std::uint64_t guid) {
    return format("%04x:%04x:%04x:%04x", static_cast<unsigned>(guid >> 48 & 0xffff),
                  static_cast<unsigned>(guid >> 32 & 0xffff), static_cast<unsigned>(guid >> 16 & 0xffff),
                  static_cast<unsigned>(guid & 0xffff));
}

template <std::size_t N>
std::string numbered(const char* const (&names)[N], std::uint32_t value) {
    return format("%u: %s", value, value < N ? names[value] : "<unknown>");
}

std::string state_text(std::uint32_t state) {
    static constexpr const char* kNames[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
    return numbered(kNames, state);
}

std::string phys_state_text(std::uint32_t state) {
    static constexpr const char* kNames[] = {
        "No state change",           "Sleep",  "Polling",           "Disabled",
        "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "Phy Test"};
    return numbered(kNames, state);
}

}  // namespace

std::string device_directory(const std::string& name) {
    return "sys/class/infiniband/" + name;
}

std::string port_directory(const std::string& name, unsigned port) {
    return device_directory(name) + "/ports/" + std::to_string(port);
}

void add_directory(TreeEntries& entries, const std::string& path) {
    for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
        entries.insert({path.substr(0, slash), {EntryKind::kDirectory, ""}});
    entries.insert({path, {EntryKind::kDirectory, ""}});
}

void add_file(TreeEntries& entries, const std::string& path, const std::string& text) {
    add_directory(entries, path.substr(0, path.rfind('/')));
    entries[path] = {EntryKind::kFile, text + "\n"};
}

void add_symlink(TreeEntries& entries, const std::string& path, const std::string& target) {
    add_directory(entries, path.substr(0, path.rfind('/')));
    entries[path] = {EntryKind::kSymlink, target};
}

void add_counters(TreeEntries& entries, const std::string& directory, const TreeCounters& counters) {
    add_directory(entries, directory);
    for (const auto& [name, value] : counters)
        add_file(entries, directory + "/" + name, std::to_string(value));
}

void add_port(TreeEntries& entries, const std::string& device, const TreePort& port) {
    const std::string base = port_directory(device, port.number) + "/";
    add_file(entries, base + "state", state_text(port.state));
    add_file(entries, base + "phys_state", phys_state_text(port.phys_state));
    add_file(entries, base + "lid", format("0x%x", port.lid));
    add_file(entries, base + "lid_mask_count", std::to_string(port.lid_mask_count));
    add_file(entries, base + "sm_lid", format("0x%x", port.sm_lid));
    add_file(entries, base + "sm_sl", std::to_string(port.sm_sl));
    add_file(entries, base + "cap_mask", format("0x%08x", port.cap_mask));
    add_file(entries, base + "rate", port.rate);
    add_file(entries, base + "link_layer", port.link_layer);

    for (const char* directory : {"gids", "gid_attrs/types", "gid_attrs/ndevs", "pkeys"})
        add_directory(entries, base + directory);
    for (std::size_t i = 0; i < port.gids.size(); ++i) {
        const std::string index = std::to_string(i);
        // The kernel's file of an empty entry answers EINVAL, which libibverbs takes for this type. A plain
        // file cannot answer so, and a missing one is an error to libibverbs.
        const bool typed = i < port.gid_types.size() && !port.gid_types[i].empty();
        add_file(entries, base + "gids/" + index, net::gid_text(port.gids[i]));
        add_file(entries, base + "gid_attrs/types/" + index, typed ? port.gid_types[i] : "IB/RoCE v1");
        if (i < port.gid_ndevs.size() && !port.gid_ndevs[i].empty())
            add_file(entries, base + "gid_attrs/ndevs/" + index, port.gid_ndevs[i]);
    }
    for (std::size_t i = 0; i < port.pkeys.size(); ++i)
        add_file(entries, base + "pkeys/" + std::to_string(i), format("0x%04x", unsigned{port.pkeys[i]}));
    add_counters(entries, base + "counters", port.counters);
    add_counters(entries, base + "hw_counters", port.hw_counters);
}

void add_device(TreeEntries& entries, const TreeDevice& device, unsigned uverbs_number) {
    const std::string base = device_directory(device.name) + "/";
    add_file(entries, base + "node_type", "1: CA");
    add_file(entries, base + "node_guid", guid_text(device.node_guid));
    add_file(entries, base + "sys_image_guid", guid_text(device.sys_image_guid));
    add_file(entries, base + "node_desc", device.node_desc);
    add_file(entries, base + "fw_ver", device.fw_ver);
    add_file(entries, base + "hw_rev", device.hw_rev);
    add_file(entries, base + "hca_type", device.hca_type);
    add_file(entries, base + "board_id", device.board_id);
    add_file(entries, base + "device/modalias", "uib:" + device.name);
    add_directory(entries, base + "ports");
    for (const TreePort& port : device.ports) add_port(entries, device.name, port);

    const std::string uverbs = "uverbs" + std::to_string(uverbs_number);
    const std::string verbs = "sys/class/infiniband_verbs/" + uverbs + "/";
    add_file(entries, verbs + "ibdev", device.name);
    add_file(entries, verbs + "dev", format("%u:%u", kUverbsMajor, kUverbsFirstMinor + uverbs_number));
    add_file(entries, verbs + "abi_version", "1");
    add_directory(entries, "dev/infiniband");
    entries["dev/infiniband/" + uverbs] = {EntryKind::kFile, ""};
}

}  // namespace uib::daemon

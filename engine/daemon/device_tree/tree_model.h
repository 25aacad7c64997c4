// What the engine's picture of /sys and /dev holds: the devices as values, and the entries (paths and texts)
// that they come to. Pure: no file is touched here; device_tree.h keeps the entries on disk.
//
// The texts are those of the kernel's InfiniBand sysfs ABI (Documentation/ABI/stable/sysfs-class-infiniband),
// since libibverbs, libibumad and perftest parse them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace uib::daemon {

using TreeCounters = std::map<std::string, std::uint64_t>;
using TreeGid = std::array<std::uint8_t, 16>;

struct TreePort {
    unsigned number = 1;
    std::uint32_t state = 1;       ///< ibv_port_state
    std::uint32_t phys_state = 3;  ///< IBA PortPhysicalState
    std::uint32_t lid = 0;
    std::uint32_t lid_mask_count = 0;
    std::uint32_t sm_lid = 0;
    std::uint32_t sm_sl = 0;
    std::uint32_t cap_mask = 0;
    std::string rate = "100 Gb/sec (4X EDR)";
    std::string link_layer = "InfiniBand";
    std::vector<TreeGid> gids;           ///< the whole table, empty entries as zeros
    std::vector<std::string> gid_types;  ///< of the same index; "IB/RoCE v1" where it is shorter or empty
    std::vector<std::string> gid_ndevs;  ///< host interface of the GID; no entry where it is shorter or empty
    std::vector<std::uint16_t> pkeys;
    TreeCounters counters;
    TreeCounters hw_counters;
};

struct TreeDevice {
    std::string name;
    unsigned index = 0;  ///< devices get their uverbs numbers in this order
    std::uint64_t node_guid = 0;
    std::uint64_t sys_image_guid = 0;
    std::string node_desc;
    std::string fw_ver;
    std::string board_id;
    std::string hca_type;
    std::string hw_rev;
    std::vector<TreePort> ports;
};

enum class EntryKind { kDirectory, kFile, kSymlink };

struct TreeEntry {
    EntryKind kind;
    std::string text;  ///< a file's content or a link's target
    bool operator==(const TreeEntry&) const = default;
};

/// Entries by path relative to the tree. The order of a std::map puts a directory before what is in it.
using TreeEntries = std::map<std::string, TreeEntry>;

inline constexpr unsigned kUverbsMajor = 231;
inline constexpr unsigned kUverbsFirstMinor = 192;

/// "sys/class/infiniband/NAME".
std::string device_directory(const std::string& name);
/// "sys/class/infiniband/NAME/ports/N".
std::string port_directory(const std::string& name, unsigned port);

/// Adds the directory and those above it.
void add_directory(TreeEntries& entries, const std::string& path);
/// Adds a file whose text gets a final newline, and the directories above it.
void add_file(TreeEntries& entries, const std::string& path, const std::string& text);
void add_symlink(TreeEntries& entries, const std::string& path, const std::string& target);
/// Adds `directory` with a file for each counter.
void add_counters(TreeEntries& entries, const std::string& directory, const TreeCounters& counters);
/// Adds all that is below port_directory().
void add_port(TreeEntries& entries, const std::string& device, const TreePort& port);
/// Adds the device with its ports, its infiniband_verbs directory and its node in dev/infiniband.
void add_device(TreeEntries& entries, const TreeDevice& device, unsigned uverbs_number);

}  // namespace uib::daemon

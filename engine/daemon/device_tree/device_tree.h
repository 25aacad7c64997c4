// The engine's picture of /sys and /dev on disk, at ipc::tree_path(socket); libuib-shim.so answers programs
// from it.
//
// DeviceTree owns the directory: the first publish() replaces what a dead engine left there, the destructor
// removes it. Each file is written aside and renamed into place, so that a reader sees the old or the new
// text and never a part, and only where its text has changed, so that an idle engine writes nothing.
// libibverbs tells a device from its successor of the same name by the time of sys/class/infiniband/NAME:
// that time is kept while the device stays.
//
// RDMA devices of the host's kernel are linked into the tree, because the shim shows a program this tree
// instead of the kernel's directories; their uverbs numbers are left to them. They are looked for at each
// publish().
//
// Not for use by several threads at once. Everything may throw std::system_error or
// std::filesystem::filesystem_error (disk full, no permission); std::invalid_argument where the caller names
// what is not there or a name that is taken.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/daemon/device_tree/tree_model.h"

namespace uib::daemon {

class DeviceTree {
  public:
    /// `host_root` is put before the host's /sys and /dev (tests have a root of their own).
    explicit DeviceTree(const std::string& socket, std::string host_root = "");
    ~DeviceTree();
    DeviceTree(const DeviceTree&) = delete;
    DeviceTree& operator=(const DeviceTree&) = delete;

    /// Makes the tree show these devices and no other of ours.
    void publish(const std::vector<TreeDevice>& devices);
    /// Replaces what is shown of a port of a published device.
    void update_port(const std::string& device, const TreePort& port);
    void update_counters(const std::string& device, unsigned port, const TreeCounters& counters,
                         const TreeCounters& hw_counters);

    /// N of the device's /dev/infiniband/uverbsN.
    unsigned uverbs_number(const std::string& device) const;
    const std::filesystem::path& path() const { return path_; }
    /// Files written so far.
    std::uint64_t files_written() const { return files_written_; }

  private:
    void claim();
    std::vector<std::string> host_names(const std::string& directory) const;
    void add_host_devices(TreeEntries& entries, const std::vector<TreeDevice>& devices);
    void assign_numbers(const std::vector<TreeDevice>& devices);
    /// Makes the entries at and below `prefix` be those of `wanted`.
    void synchronise(const std::string& prefix, const TreeEntries& wanted);
    void write_entry(const std::string& name, const TreeEntry& entry);
    void remove_entry(const std::string& name, const TreeEntry& entry);
    void require_port(const std::string& device, unsigned port) const;

    const std::filesystem::path path_;
    const std::string host_root_;
    std::string owner_;                        ///< text of the tree's owner file once it is ours
    TreeEntries published_;                    ///< what is on disk
    std::map<std::string, unsigned> numbers_;  ///< uverbs numbers of the published devices
    std::uint64_t files_written_ = 0;
};

}  // namespace uib::daemon

#include "engine/daemon/device_tree/device_tree.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <set>
#include <stdexcept>
#include <system_error>

#include "engine/ipc/socket_path.h"

namespace uib::daemon {
namespace fs = std::filesystem;
namespace {

constexpr const char* kOwnerFile = ".owner";
constexpr const char* kNewFile = ".new";
constexpr const char* kDeviceClass = "sys/class/infiniband";
constexpr const char* kVerbsClass = "sys/class/infiniband_verbs";
constexpr const char* kNodeDirectory = "dev/infiniband";

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

class Descriptor {
  public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() {
        if (fd_ >= 0) close(fd_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }

  private:
    const int fd_;
};

/// Keeps the modification time of a device's directory over changes of its entries (see the head of
/// device_tree.h).
class KeptTime {
  public:
    explicit KeptTime(const fs::path& directory) : directory_(directory) {
        known_ = directory.parent_path().filename() == "infiniband" && stat(directory.c_str(), &before_) == 0;
    }
    ~KeptTime() {
        if (!known_) return;
        const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, before_.st_mtim};
        utimensat(AT_FDCWD, directory_.c_str(), times, 0);
    }
    KeptTime(const KeptTime&) = delete;
    KeptTime& operator=(const KeptTime&) = delete;

  private:
    const fs::path directory_;
    struct stat before_ {};
    bool known_ = false;
};

/// Writes a whole file, readable for everybody whatever the umask is.
void write_file(const fs::path& path, const std::string& text) {
    const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (file.get() < 0) fail(path);
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t count = write(file.get(), text.data() + done, text.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail(path);
        done += static_cast<std::size_t>(count);
    }
    if (fchmod(file.get(), 0644) != 0) fail(path);
}

void make_directory(const fs::path& path) {
    if (mkdir(path.c_str(), 0755) != 0) fail(path);
    if (chmod(path.c_str(), 0755) != 0) fail(path);
}

std::string read_file(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> names_in(const fs::path& directory) {
    std::vector<std::string> names;
    std::error_code absent;
    for (const auto& entry : fs::directory_iterator(directory, absent))
        names.push_back(entry.path().filename());
    return names;
}

/// Whether nothing is there that an engine would not have made.
bool holds_only_ours(const fs::path& tree) {
    const std::set<std::string> ours = {kOwnerFile, kNewFile, "sys", "dev"};
    return std::ranges::all_of(names_in(tree), [&](const std::string& name) { return ours.contains(name); });
}

std::string unique_owner() {
    std::uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) fail("getrandom");
    return std::to_string(getpid()) + " " + std::to_string(random) + "\n";
}

bool is_below(const std::string& name, const std::string& prefix) {
    return prefix.empty() || name == prefix || name.starts_with(prefix + "/");
}

}  // namespace

DeviceTree::DeviceTree(const std::string& socket, std::string host_root)
    : path_(ipc::tree_path(socket)), host_root_(std::move(host_root)) {}

std::vector<std::string> DeviceTree::host_names(const std::string& directory) const {
    // An engine that is started from a shell with the shim in its environment must not take its own devices
    // (or those of the one before it) for the kernel's. The shim does not know this spelling.
    return names_in((host_root_.empty() ? "/proc/self/root" : host_root_) + "/" + directory);
}

DeviceTree::~DeviceTree() {
    // A later engine on the same socket may have made the tree its own.
    if (owner_.empty() || read_file(path_ / kOwnerFile) != owner_) return;
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

void DeviceTree::claim() {
    const fs::file_status status = fs::symlink_status(path_);
    if (fs::exists(status)) {
        // Only what is a tree of an engine is removed: the path comes from a configuration.
        if (!fs::is_directory(status) || !holds_only_ours(path_))
            throw std::system_error(EEXIST, std::generic_category(),
                                    path_.string() + " is not an engine's device tree; move it away");
        fs::remove_all(path_);
    }
    make_directory(path_);
    const std::string owner = unique_owner();
    write_file(path_ / kOwnerFile, owner);
    owner_ = owner;
}

void DeviceTree::publish(const std::vector<TreeDevice>& devices) {
    for (const TreeDevice& device : devices)
        if (device.name.empty() || device.name[0] == '.' || device.name.find('/') != std::string::npos)
            throw std::invalid_argument("\"" + device.name + "\" is no name for a device");
    assign_numbers(devices);
    TreeEntries wanted;
    for (const char* directory : {kDeviceClass, kVerbsClass, kNodeDirectory})
        add_directory(wanted, directory);
    add_file(wanted, std::string(kVerbsClass) + "/abi_version", "6");
    for (const TreeDevice& device : devices) add_device(wanted, device, numbers_.at(device.name));
    add_host_devices(wanted, devices);
    if (owner_.empty()) claim();
    synchronise("", wanted);
}

void DeviceTree::assign_numbers(const std::vector<TreeDevice>& devices) {
    std::set<unsigned> taken;
    for (const std::string& name : host_names(kVerbsClass))
        if (name.starts_with("uverbs")) taken.insert(static_cast<unsigned>(std::atoi(name.c_str() + 6)));

    std::vector<const TreeDevice*> in_order;
    for (const TreeDevice& device : devices) in_order.push_back(&device);
    std::ranges::stable_sort(in_order, {}, &TreeDevice::index);

    std::map<std::string, unsigned> numbers;
    for (const TreeDevice* device : in_order) {
        const auto known = numbers_.find(device->name);
        if (known != numbers_.end() && taken.insert(known->second).second) numbers.insert(*known);
    }
    for (const TreeDevice* device : in_order) {
        if (numbers.contains(device->name)) continue;
        unsigned number = 0;
        while (!taken.insert(number).second) ++number;
        numbers[device->name] = number;
    }
    if (numbers.size() != devices.size())
        throw std::invalid_argument("two devices of one name in the device tree");
    numbers_ = std::move(numbers);
}

void DeviceTree::add_host_devices(TreeEntries& entries, const std::vector<TreeDevice>& devices) {
    for (const std::string& name : host_names(kDeviceClass))
        if (std::ranges::find(devices, name, &TreeDevice::name) != devices.end())
            throw std::invalid_argument("the kernel has an RDMA device named " + name +
                                        "; choose another name");
    for (const char* directory : {kDeviceClass, kVerbsClass, kNodeDirectory}) {
        for (const std::string& name : host_names(directory)) {
            const std::string entry = std::string(directory) + "/" + name;
            if (!entries.contains(entry)) add_symlink(entries, entry, host_root_ + "/" + entry);
        }
    }
}

void DeviceTree::synchronise(const std::string& prefix, const TreeEntries& wanted) {
    std::vector<std::string> gone;
    for (const auto& [name, entry] : published_) {
        const auto found = wanted.find(name);
        const bool stays = found != wanted.end() && found->second.kind == entry.kind;
        if (is_below(name, prefix) && !stays) gone.push_back(name);
    }
    // What is in a directory goes before the directory.
    for (auto name = gone.rbegin(); name != gone.rend(); ++name) {
        remove_entry(*name, published_.at(*name));
        published_.erase(*name);
    }
    for (const auto& [name, entry] : wanted) {
        const auto found = published_.find(name);
        if (found != published_.end() && found->second == entry) continue;
        write_entry(name, entry);
        published_.insert_or_assign(name, entry);
    }
}

void DeviceTree::write_entry(const std::string& name, const TreeEntry& entry) {
    const fs::path target = path_ / name;
    const KeptTime kept(target.parent_path());
    if (entry.kind == EntryKind::kDirectory) {
        make_directory(target);
        return;
    }
    const fs::path aside = path_ / kNewFile;
    unlink(aside.c_str());  // left by a write that failed
    if (entry.kind == EntryKind::kFile) {
        write_file(aside, entry.text);
        ++files_written_;
    } else if (symlink(entry.text.c_str(), aside.c_str()) != 0) {
        fail(aside);
    }
    if (rename(aside.c_str(), target.c_str()) != 0) fail(target);
}

void DeviceTree::remove_entry(const std::string& name, const TreeEntry& entry) {
    const fs::path target = path_ / name;
    const KeptTime kept(target.parent_path());
    const int result = entry.kind == EntryKind::kDirectory ? rmdir(target.c_str()) : unlink(target.c_str());
    if (result != 0 && errno != ENOENT) fail(target);
}

void DeviceTree::require_port(const std::string& device, unsigned port) const {
    if (!published_.contains(port_directory(device, port)))
        throw std::invalid_argument("no port " + std::to_string(port) + " of " + device +
                                    " in the device tree");
}

void DeviceTree::update_port(const std::string& device, const TreePort& port) {
    require_port(device, port.number);
    TreeEntries wanted;
    add_port(wanted, device, port);
    synchronise(port_directory(device, port.number), wanted);
}

void DeviceTree::update_counters(const std::string& device, unsigned port, const TreeCounters& counters,
                                 const TreeCounters& hw_counters) {
    require_port(device, port);
    const std::string base = port_directory(device, port);
    for (const auto& [directory, values] :
         {std::pair{base + "/counters", &counters}, std::pair{base + "/hw_counters", &hw_counters}}) {
        TreeEntries wanted;
        add_counters(wanted, directory, *values);
        synchronise(directory, wanted);
    }
}

unsigned DeviceTree::uverbs_number(const std::string& device) const {
    const auto found = numbers_.find(device);
    if (found == numbers_.end()) throw std::invalid_argument("no device " + device + " in the device tree");
    return found->second;
}

}  // namespace uib::daemon

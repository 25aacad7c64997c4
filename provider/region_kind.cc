#include "provider/region_kind.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

namespace uib::provider {
namespace {

constexpr std::uint64_t kWorthSearching = 4096;

struct MapEntry {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;
    std::uint64_t inode = 0;
    dev_t device = 0;
    bool shared = false;
    bool readable = false;
    bool writable = false;
    std::string name;
};

// The kernel's PROCMAP_QUERY ioctl (since 6.11): one mapping without reading the whole list.
struct ProcmapQuery {
    std::uint64_t size;
    std::uint64_t query_flags;
    std::uint64_t query_addr;
    std::uint64_t vma_start;
    std::uint64_t vma_end;
    std::uint64_t vma_flags;
    std::uint64_t vma_page_size;
    std::uint64_t vma_offset;
    std::uint64_t inode;
    std::uint32_t dev_major;
    std::uint32_t dev_minor;
    std::uint32_t vma_name_size;
    std::uint32_t build_id_size;
    std::uint64_t vma_name_addr;
    std::uint64_t build_id_addr;
};
constexpr std::uint64_t kProcmapVmaReadable = 1, kProcmapVmaWritable = 2, kProcmapVmaShared = 8;
const unsigned long kProcmapQuery = _IOWR('f', 17, ProcmapQuery);

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;
struct CloseDirectory {
    void operator()(DIR* directory) const { ::closedir(directory); }
};

bool query_by_ioctl(int maps, std::uint64_t address, MapEntry& entry) {
    char name[512] = "";
    ProcmapQuery query{};
    query.size = sizeof query;
    query.query_addr = address;
    query.vma_name_size = sizeof name;
    query.vma_name_addr = reinterpret_cast<std::uint64_t>(name);
    if (::ioctl(maps, kProcmapQuery, &query) != 0) return false;
    entry.start = query.vma_start;
    entry.end = query.vma_end;
    entry.offset = query.vma_offset;
    entry.inode = query.inode;
    entry.device = makedev(query.dev_major, query.dev_minor);
    entry.shared = (query.vma_flags & kProcmapVmaShared) != 0;
    entry.readable = (query.vma_flags & kProcmapVmaReadable) != 0;
    entry.writable = (query.vma_flags & kProcmapVmaWritable) != 0;
    entry.name = name;
    return true;
}

bool parse_line(const char* line, MapEntry& entry) {
    char permissions[5] = "";
    unsigned major = 0, minor = 0;
    int name_at = 0;
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &entry.start,
                    &entry.end, permissions, &entry.offset, &major, &minor, &entry.inode, &name_at) < 7)
        return false;
    entry.device = makedev(major, minor);
    entry.shared = permissions[3] == 's';
    entry.readable = permissions[0] == 'r';
    entry.writable = permissions[1] == 'w';
    entry.name.assign(line + name_at, std::strcspn(line + name_at, "\n"));
    return true;
}

/// This process's mappings, as the kernel lists them.
class Mappings {
  public:
    Mappings() : file_(std::fopen("/proc/self/maps", "re")) {}

    [[nodiscard]] bool known() const { return file_ != nullptr; }

    std::optional<MapEntry> find(std::uint64_t address) {
        if (!known()) return std::nullopt;
        MapEntry entry;
        if (query_by_ioctl(::fileno(file_.get()), address, entry)) return entry;
        std::rewind(file_.get());
        char* line = nullptr;
        std::size_t room = 0;
        std::optional<MapEntry> found;
        while (!found && ::getline(&line, &room, file_.get()) > 0)
            if (parse_line(line, entry) && entry.start <= address && address < entry.end) found = entry;
        std::free(line);
        return found;
    }

  private:
    File file_;
};

bool is_file_of(int fd, const MapEntry& entry) {
    struct stat file {};
    return ::fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_ino == entry.inode &&
           file.st_dev == entry.device;
}

/// A descriptor for reading and writing that the program holds for the mapped file, duplicated.
UniqueFd find_open_file(const MapEntry& entry) {
    const std::unique_ptr<DIR, CloseDirectory> directory(::opendir("/proc/self/fd"));
    if (!directory) return {};
    while (const dirent* item = ::readdir(directory.get())) {
        char* end = nullptr;
        const long fd = std::strtol(item->d_name, &end, 10);
        if (end == item->d_name || *end != '\0' || fd == ::dirfd(directory.get())) continue;
        if (!is_file_of(static_cast<int>(fd), entry)) continue;
        if ((::fcntl(static_cast<int>(fd), F_GETFL) & O_ACCMODE) != O_RDWR) continue;
        return UniqueFd(::fcntl(static_cast<int>(fd), F_DUPFD_CLOEXEC, 0));
    }
    return {};
}

UniqueFd open_by_name(const MapEntry& entry) {
    if (entry.name.empty() || entry.name[0] != '/') return {};
    UniqueFd fd(::open(entry.name.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!fd || !is_file_of(fd.get(), entry)) return {};
    return fd;
}

/// The kernel's own way to the file of a mapping, for files that nobody holds open any more (shared anonymous
/// memory, a memfd closed after mmap). Only privileged processes may follow it.
UniqueFd open_by_mapping(const MapEntry& entry) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/map_files/%" PRIx64 "-%" PRIx64, entry.start, entry.end);
    UniqueFd fd(::open(path, O_RDWR | O_CLOEXEC));
    if (!fd || !is_file_of(fd.get(), entry)) return {};
    return fd;
}

}  // namespace

RegionSource find_region_source(std::uint64_t address, std::uint64_t length) {
    RegionSource source;
    if (length < kWorthSearching) return source;
    const std::optional<MapEntry> entry = Mappings().find(address);
    if (!entry || !entry->shared || length > entry->end - address) return source;
    const std::uint64_t offset = entry->offset + (address - entry->start);
    if (entry->name.starts_with("/SYSV")) {
        source.kind = ipc::RegionKind::kSysvShm;
        source.object_handle = static_cast<std::uint32_t>(entry->inode);
        source.file_offset = offset;
        return source;
    }
    UniqueFd file = find_open_file(*entry);
    if (!file) file = open_by_name(*entry);
    if (!file) file = open_by_mapping(*entry);
    if (!file) return source;
    source.kind = ipc::RegionKind::kShared;
    source.file = std::move(file);
    source.file_offset = offset;
    return source;
}

bool is_mapped(std::uint64_t address, std::uint64_t length, bool writable) {
    Mappings mappings;
    if (!mappings.known()) return true;
    const std::uint64_t end = address + length;
    while (address < end) {
        const std::optional<MapEntry> entry = mappings.find(address);
        if (!entry || !entry->readable || (writable && !entry->writable)) return false;
        address = entry->end;
    }
    return true;
}

}  // namespace uib::provider

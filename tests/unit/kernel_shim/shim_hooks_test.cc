// Paths under the shim: what is answered from the tree, what is not, and how a device looks.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

#include "tests/unit/kernel_shim/shim_environment.h"

extern "C" {
int __open_2(const char*, int);
int __openat_2(int, const char*, int);
int __xstat(int, const char*, struct stat*);
int __fxstat(int, int, struct stat*);
}

namespace uib::test {
namespace {

constexpr const char* kGuid = "0211:22ff:fe33:4400\n";
constexpr const char* kGuidPath = "/sys/class/infiniband/uib0/node_guid";

std::string read_and_close(int fd) {
    char text[128];
    const ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0) close(fd);
    return count < 0 ? "errno " + std::to_string(errno) : std::string(text, static_cast<std::size_t>(count));
}

std::set<std::string> names_in(const char* path) {
    std::set<std::string> names;
    DIR* directory = opendir(path);
    if (directory == nullptr) return names;
    while (const dirent* entry = readdir(directory))
        if (entry->d_name[0] != '.') names.insert(entry->d_name);
    closedir(directory);
    return names;
}

void expect_device(const struct stat& status, unsigned minor_number) {
    EXPECT_TRUE(S_ISCHR(status.st_mode));
    EXPECT_EQ(status.st_mode & 0777, 0666U);
    EXPECT_EQ(status.st_rdev, makedev(231, minor_number));
}

TEST_F(ShimTest, every_way_to_open_a_file_reads_the_tree) {
    EXPECT_EQ(read_and_close(open(kGuidPath, O_RDONLY)), kGuid);
    EXPECT_EQ(read_and_close(open64(kGuidPath, O_RDONLY | O_CLOEXEC)), kGuid);
    EXPECT_EQ(read_and_close(__open_2(kGuidPath, O_RDONLY)), kGuid);
    EXPECT_EQ(read_and_close(openat(AT_FDCWD, kGuidPath, O_RDONLY)), kGuid);
    EXPECT_EQ(read_and_close(openat64(-1, kGuidPath, O_RDONLY)), kGuid);
    EXPECT_EQ(read_and_close(__openat_2(AT_FDCWD, kGuidPath, O_RDONLY)), kGuid);
    EXPECT_EQ(file_text(kGuidPath), kGuid);
    for (FILE* file : {fopen(kGuidPath, "r"), fopen64(kGuidPath, "re")}) {
        ASSERT_NE(file, nullptr);
        char text[64] = "";
        EXPECT_NE(fgets(text, sizeof text, file), nullptr);
        EXPECT_STREQ(text, kGuid);
        fclose(file);
    }
}

TEST_F(ShimTest, paths_may_be_written_in_other_ways) {
    for (const char* path :
         {"//sys/class/infiniband/uib0/node_guid", "/sys/class/infiniband//uib0/node_guid",
          "/sys/./class///infiniband/uib0/./node_guid", "/./sys/class/infiniband/uib0//node_guid",
          "/sys/class/infiniband/uib1/../uib0/node_guid"})
        EXPECT_EQ(read_and_close(open(path, O_RDONLY)), kGuid) << path;
}

TEST_F(ShimTest, a_directory_of_the_tree_leads_to_its_entries) {
    const int directory = open("/sys/class/infiniband//uib0/", O_RDONLY | O_DIRECTORY);
    ASSERT_GE(directory, 0);
    EXPECT_EQ(read_and_close(openat(directory, "node_guid", O_RDONLY)), kGuid);
    EXPECT_EQ(faccessat(directory, "ports/1/state", R_OK, 0), 0);
    close(directory);
}

TEST_F(ShimTest, directories_are_listed) {
    EXPECT_EQ(names_in("/sys/class/infiniband"), (std::set<std::string>{"uib0", "uib1"}));
    EXPECT_EQ(names_in("/sys/class/infiniband_verbs"),
              (std::set<std::string>{"abi_version", "uverbs0", "uverbs1"}));
    EXPECT_EQ(names_in("/dev/infiniband"), (std::set<std::string>{"uverbs0", "uverbs1"}));
    dirent** names = nullptr;
    const int count = scandir("/sys/class/infiniband/uib0/ports", &names, nullptr, alphasort);
    ASSERT_EQ(count, 3);
    EXPECT_STREQ(names[2]->d_name, "1");
    for (int i = 0; i < count; ++i) free(names[i]);
    free(names);
}

TEST_F(ShimTest, a_device_looks_like_a_character_device) {
    struct stat status {};
    ASSERT_EQ(stat(kDevice, &status), 0);
    expect_device(status, 192);
    ASSERT_EQ(stat("/dev//infiniband/uverbs1", &status), 0);
    expect_device(status, 193);
    ASSERT_EQ(lstat(kDevice, &status), 0);
    expect_device(status, 192);
    ASSERT_EQ(fstatat(AT_FDCWD, kDevice, &status, AT_SYMLINK_NOFOLLOW), 0);
    expect_device(status, 192);
    ASSERT_EQ(__xstat(1, kDevice, &status), 0);
    expect_device(status, 192);
    struct stat64 status64 {};
    ASSERT_EQ(stat64(kDevice, &status64), 0);
    EXPECT_TRUE(S_ISCHR(status64.st_mode));
    struct statx extended {};
    ASSERT_EQ(statx(AT_FDCWD, kDevice, 0, STATX_BASIC_STATS, &extended), 0);
    EXPECT_TRUE(S_ISCHR(extended.stx_mode));
    EXPECT_EQ(extended.stx_rdev_minor, 192U);
}

TEST_F(ShimTest, an_open_device_looks_like_one_too) {
    const int fd = open("/dev/infiniband/uverbs1", O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    struct stat status {};
    ASSERT_EQ(fstat(fd, &status), 0);
    expect_device(status, 193);
    ASSERT_EQ(__fxstat(1, fd, &status), 0);
    expect_device(status, 193);
    ASSERT_EQ(fstatat(fd, "", &status, AT_EMPTY_PATH), 0);
    expect_device(status, 193);
    struct statx extended {};
    ASSERT_EQ(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended), 0);
    EXPECT_EQ(extended.stx_rdev_major, 231U);
    EXPECT_EQ(extended.stx_rdev_minor, 193U);
    close(fd);
}

TEST_F(ShimTest, the_device_number_is_that_of_the_tree) {
    std::ofstream(tree.path() / "sys/class/infiniband_verbs/uverbs0/dev") << "240:7\n";
    struct stat status {};
    ASSERT_EQ(stat(kDevice, &status), 0);
    EXPECT_EQ(status.st_rdev, makedev(240, 7));
}

TEST_F(ShimTest, access_readlink_and_realpath_follow) {
    EXPECT_EQ(access(kDevice, R_OK | W_OK), 0);
    EXPECT_EQ(access(kDevice, X_OK), -1);
    EXPECT_EQ(errno, EACCES);
    EXPECT_EQ(access(kGuidPath, R_OK), 0);
    EXPECT_EQ(faccessat(AT_FDCWD, kGuidPath, R_OK, 0), 0);
    EXPECT_EQ(euidaccess(kGuidPath, R_OK), 0);
    char text[8];
    EXPECT_EQ(readlink(kDevice, text, sizeof text), -1);
    EXPECT_EQ(errno, EINVAL);
    char resolved[PATH_MAX];
    EXPECT_STREQ(realpath("/dev/./infiniband//uverbs0", resolved), kDevice);
    EXPECT_STREQ(realpath(kGuidPath, resolved), (tree.path() / (kGuidPath + 1)).c_str());
    char* made = canonicalize_file_name(kGuidPath);
    EXPECT_STREQ(made, resolved);
    free(made);
}

TEST_F(ShimTest, what_is_not_in_the_tree_is_the_kernels) {
    for (const char* path :
         {"/sys/class/infiniband/none", "/dev/infiniband/uverbs7", "/dev/infiniband/rdma_cm",
          "/sys/class/infiniband_mad/umad0/port", "/dev/infiniband/uverbs0x"}) {
        errno = 0;
        EXPECT_EQ(open(path, O_RDONLY), -1) << path;
        EXPECT_EQ(errno, ENOENT) << path;
    }
    struct stat status {};
    EXPECT_EQ(stat("/dev/null", &status), 0);
    EXPECT_EQ(status.st_rdev, makedev(1, 3));
    EXPECT_TRUE(names_in("/sys/class").contains("net"));
    EXPECT_FALSE(names_in("/sys/class").contains("infiniband"));
}

TEST_F(ShimTest, a_link_to_a_node_of_the_kernels_is_not_ours) {
    ASSERT_EQ(symlink("/dev/null", (tree.path() / "dev/infiniband/uverbs9").c_str()), 0);
    EXPECT_EQ(open("/dev/infiniband/uverbs9", O_RDWR), -1);  // the kernel has none under this name
    EXPECT_EQ(errno, ENOENT);
    EXPECT_TRUE(engine.peers().empty());
}

TEST_F(ShimTest, an_engine_under_the_shim_does_not_take_its_devices_for_the_kernels) {
    ASSERT_TRUE(names_in("/sys/class/infiniband").contains("uib0"));
    daemon::DeviceTree other(socket + ".other");
    EXPECT_NO_THROW(other.publish({sample_device("uib0")}));
    EXPECT_NO_THROW(tree.publish({sample_device("uib0")}));
}

TEST_F(ShimTest, success_leaves_errno_alone) {
    errno = 77;
    const int file = open(kGuidPath, O_RDONLY);
    struct stat status {};
    const int device = open(kDevice, O_RDWR | O_CLOEXEC);
    EXPECT_EQ(stat(kDevice, &status), 0);
    EXPECT_EQ(fstat(device, &status), 0);
    EXPECT_EQ(access(kDevice, R_OK), 0);
    // Without its text the number is told from the name; that the file was not found must not show.
    ASSERT_EQ(unlink((tree.path() / "sys/class/infiniband_verbs/uverbs0/dev").c_str()), 0);
    EXPECT_EQ(stat(kDevice, &status), 0);
    expect_device(status, 192);
    close(device);
    close(file);
    EXPECT_EQ(errno, 77);
}

TEST_F(ShimTest, a_file_can_still_be_made_with_its_mode) {
    const std::string path = std::string(getenv("UIB_SHIM_TEST")) + "/made";
    const mode_t before = umask(0);
    const int fd = open(path.c_str(), O_CREAT | O_WRONLY, 0641);
    umask(before);
    ASSERT_GE(fd, 0);
    struct stat status {};
    fstat(fd, &status);
    EXPECT_EQ(status.st_mode & 0777, 0641U);
    close(fd);
    EXPECT_EQ(read_and_close(open("/tmp", O_TMPFILE | O_RDWR, 0600)), "");
    // Nothing is made in the tree on the way.
    EXPECT_EQ(open("/sys/class/infiniband/uib0/made", O_CREAT | O_WRONLY, 0600), -1);
    EXPECT_FALSE(std::filesystem::exists(tree.path() / "sys/class/infiniband/uib0/made"));
}

TEST_F(ShimTest, a_bad_path_is_the_c_librarys_business) {
    const char* volatile none = nullptr;
    EXPECT_EQ(open(none, O_RDONLY), -1);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(open(("/sys/class/infiniband/" + std::string(5000, 'x')).c_str(), O_RDONLY), -1);
    EXPECT_EQ(errno, ENAMETOOLONG);
    EXPECT_EQ(open("", O_RDONLY), -1);
    EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace uib::test

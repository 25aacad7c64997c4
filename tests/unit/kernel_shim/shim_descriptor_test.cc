// Descriptors under the shim: devices, their copies, the provider's hooks, and that nothing else is ever
// taken for a device.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "tests/unit/kernel_shim/shim_environment.h"

namespace uib::test {
namespace {

using Write = int (*)(void*, const void*, std::size_t);
using Ioctl = int (*)(void*, unsigned long, void*);
using Register = void (*)(int, Write, Ioctl, void*);
using Unregister = void (*)(int);

/// A provider's end: remembers what was written.
struct Provider {
    std::string written;
    int result = 0;

    static int on_write(void* cookie, const void* buffer, std::size_t length) {
        auto* self = static_cast<Provider*>(cookie);
        self->written.assign(static_cast<const char*>(buffer), length);
        if (self->result < 0) errno = EPERM;
        return self->result;
    }
    static int on_ioctl(void*, unsigned long request, void* argument) {
        *static_cast<int*>(argument) = static_cast<int>(request);
        return 5;
    }
    void take(int fd) {
        const auto function = reinterpret_cast<Register>(dlsym(RTLD_DEFAULT, "uib_shim_register_context"));
        ASSERT_NE(function, nullptr);
        function(fd, on_write, on_ioctl, this);
    }
    static void leave(int fd) {
        reinterpret_cast<Unregister>(dlsym(RTLD_DEFAULT, "uib_shim_unregister_context"))(fd);
    }
};

constexpr unsigned long kVerbsIoctl = 0xc0181b01;  // RDMA_VERBS_IOCTL

struct ShimDescriptorTest : ShimTest {
    int open_device() {
        const int fd = open(kDevice, O_RDWR | O_CLOEXEC);
        EXPECT_GE(fd, 0);
        return fd;
    }
    /// A number that the engine's thread, which takes the lowest free ones, does not take meanwhile.
    int open_high() {
        const int fd = open_device();
        const int high = fcntl(fd, F_DUPFD_CLOEXEC, 500);
        EXPECT_GE(high, 500);
        close(fd);
        return high;
    }
    void expect_hooked(int fd) {
        provider.written.clear();
        EXPECT_EQ(write(fd, "hello", 5), 5) << fd;
        EXPECT_EQ(provider.written, "hello") << fd;
    }
    /// A write to a descriptor that is a file of the program's reaches the file.
    static void expect_plain(int fd, int read_end) {
        ASSERT_EQ(write(fd, "abc", 3), 3);
        char text[4] = "";
        EXPECT_EQ(read(read_end, text, 3), 3);
        EXPECT_STREQ(text, "abc");
    }
    Provider provider;
};

TEST_F(ShimDescriptorTest, a_device_is_a_connection_to_the_engine) {
    const int fd = open_device();
    int type = 0;
    socklen_t size = sizeof type;
    EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size), 0);
    EXPECT_EQ(type, SOCK_SEQPACKET);
    EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    const int other = open(kDevice, O_RDWR);
    EXPECT_EQ(fcntl(other, F_GETFD), 0);
    for (int i = 0; i < 500 && engine.peers().size() < 2; ++i) usleep(10000);
    const std::vector<std::string> peers = engine.peers();
    ASSERT_EQ(peers.size(), 2U);
    EXPECT_TRUE(peers[0].starts_with("uib-client-uverbs0-" + std::to_string(getpid()) + "-")) << peers[0];
    EXPECT_NE(peers[0], peers[1]);
    close(fd);
    close(other);
}

TEST_F(ShimDescriptorTest, without_a_registration_nothing_succeeds) {
    const int fd = open_device();
    char text[16] = "";
    EXPECT_EQ(write(fd, "x", 1), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(read(fd, text, sizeof text), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ioctl(fd, kVerbsIoctl, text), -1);
    EXPECT_EQ(errno, ENOTTY);
    int on = 1;
    EXPECT_EQ(ioctl(fd, FIONBIO, &on), 0);
    EXPECT_NE(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    close(fd);
    EXPECT_EQ(engine.strays(), 0);
}

TEST_F(ShimDescriptorTest, the_provider_answers_writes_and_ioctls) {
    const int fd = open_device();
    provider.take(fd);
    errno = 77;
    expect_hooked(fd);
    EXPECT_EQ(errno, 77);
    provider.result = -1;
    EXPECT_EQ(write(fd, "x", 1), -1);
    EXPECT_EQ(errno, EPERM);
    int argument = 0;
    EXPECT_EQ(ioctl(fd, kVerbsIoctl, &argument), 5);
    EXPECT_EQ(argument, static_cast<int>(kVerbsIoctl));
    Provider::leave(fd);
    EXPECT_EQ(write(fd, "x", 1), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ioctl(fd, kVerbsIoctl, &argument), -1);
    EXPECT_EQ(errno, ENOTTY);
    close(fd);
    EXPECT_EQ(engine.strays(), 0);
}

TEST_F(ShimDescriptorTest, copies_share_the_registration) {
    const int fd = open_device();
    provider.take(fd);
    const int free_number = dup(0);
    const std::vector<int> copies = {dup(fd), dup2(fd, free_number), dup3(fd, 700, O_CLOEXEC),
                                     fcntl(fd, F_DUPFD, 800), fcntl(fd, F_DUPFD_CLOEXEC, 900)};
    for (const int copy : copies) {
        ASSERT_GE(copy, 0);
        expect_hooked(copy);
        struct stat status {};
        ASSERT_EQ(fstat(copy, &status), 0);
        EXPECT_TRUE(S_ISCHR(status.st_mode));
    }
    EXPECT_EQ(dup2(fd, fd), fd);
    expect_hooked(fd);
    close(fd);
    expect_hooked(copies[0]);
    Provider::leave(copies[0]);
    Provider next;
    const int second = open_device();
    next.take(second);
    for (const int copy : copies) {  // not the next one's either
        EXPECT_EQ(write(copy, "x", 1), -1);
        EXPECT_EQ(errno, EINVAL);
        close(copy);
    }
    EXPECT_EQ(next.written, "");
    Provider::leave(second);
    close(second);
}

TEST_F(ShimDescriptorTest, a_number_that_was_a_device_is_free_for_other_files) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const auto becomes_plain = [&](int fd) {
        ASSERT_EQ(dup2(ends[1], fd), fd);
        expect_plain(fd, ends[0]);
        close(fd);
    };
    int fd = open_high();
    close(fd);
    becomes_plain(fd);
    becomes_plain(open_high());  // dup2 over it
    fd = open_high();
    ASSERT_EQ(close_range(static_cast<unsigned>(fd), static_cast<unsigned>(fd), 0), 0);
    becomes_plain(fd);
    // The C library's own closes are not seen.
    fd = open_high();
    provider.take(fd);
    ASSERT_EQ(syscall(SYS_close, fd), 0);
    ASSERT_EQ(syscall(SYS_dup3, ends[1], fd, 0), fd);
    expect_plain(fd, ends[0]);
    EXPECT_EQ(provider.written, "");
    close(fd);
}

TEST_F(ShimDescriptorTest, close_range_that_only_marks_keeps_the_device) {
    const int fd = open(kDevice, O_RDWR);
    provider.take(fd);
    ASSERT_EQ(close_range(static_cast<unsigned>(fd), ~0U, CLOSE_RANGE_CLOEXEC), 0);
    expect_hooked(fd);
    Provider::leave(fd);
    close(fd);
}

TEST_F(ShimDescriptorTest, high_numbers_work) {
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const int number = static_cast<int>(limit.rlim_cur) - 1;
    ASSERT_GT(number, 1024);
    const int fd = open_device();
    provider.take(fd);
    ASSERT_EQ(dup2(fd, number), number);
    expect_hooked(number);
    Provider::leave(fd);
    close(number);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ASSERT_EQ(dup2(ends[1], number), number);
    expect_plain(number, ends[0]);
    closefrom(number);
    EXPECT_EQ(write(number, "x", 1), -1);
    EXPECT_EQ(errno, EBADF);
    close(fd);
}

TEST_F(ShimDescriptorTest, a_received_descriptor_is_recognised) {
    const int fd = open("/dev/infiniband/uverbs1", O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    char byte = 'x';
    iovec vector{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    msghdr message{};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    ASSERT_EQ(sendmsg(pair[0], &message, 0), 1);
    ASSERT_EQ(recvmsg(pair[1], &message, 0), 1);
    int received = -1;
    std::memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
    close(fd);
    struct stat status {};
    ASSERT_EQ(fstat(received, &status), 0);
    EXPECT_TRUE(S_ISCHR(status.st_mode));
    EXPECT_EQ(status.st_rdev, static_cast<dev_t>(231 << 8 | 193));
    EXPECT_EQ(write(received, "x", 1), -1);  // known by now
    EXPECT_EQ(errno, EINVAL);
    provider.take(received);
    expect_hooked(received);
    Provider::leave(received);
    close(received);
    struct stat plain {};
    ASSERT_EQ(fstat(pair[0], &plain), 0);
    EXPECT_TRUE(S_ISSOCK(plain.st_mode));
    EXPECT_EQ(engine.strays(), 0);
}

TEST_F(ShimDescriptorTest, children_of_fork_and_vfork_close_their_own) {
    const int fd = open_device();
    provider.take(fd);
    const pid_t forked = fork();
    if (forked == 0) {
        provider.written.clear();
        const bool works = write(fd, "child", 5) == 5 && provider.written == "child";
        close(fd);
        errno = 0;
        const bool closed = write(fd, "x", 1) == -1 && errno == EBADF;
        _exit(works && closed ? 0 : 1);
    }
    int status = -1;
    waitpid(forked, &status, 0);
    EXPECT_EQ(status, 0);
    expect_hooked(fd);
    // Memory, and so the table, is shared with a child of vfork; its descriptors are not.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    const pid_t sharing = vfork();
#pragma GCC diagnostic pop
    if (sharing == 0) {
        close(fd);
        dup2(0, fd);
        close_range(3, ~0U, 0);
        _exit(0);
    }
    waitpid(sharing, &status, 0);
    expect_hooked(fd);
    Provider::leave(fd);
    close(fd);
}

TEST_F(ShimDescriptorTest, only_the_rdma_netlink_socket_is_refused) {
    EXPECT_EQ(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA), -1);
    EXPECT_EQ(errno, EPROTONOSUPPORT);
    const int route = ::socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    EXPECT_GE(route, 0);
    close(route);
    const int local = ::socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_GE(local, 0);
    close(local);
}

TEST_F(ShimDescriptorTest, threads_may_open_copy_and_close_at_the_same_time) {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            Provider own;
            for (int turn = 0; turn < 200; ++turn) {
                const int fd = open(kDevice, O_RDWR | O_CLOEXEC);
                own.take(fd);
                const int copy = dup(fd);
                const std::string text = std::to_string(turn);
                if (write(copy, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
                    own.written != text)
                    ++wrong;
                Provider::leave(fd);
                close(copy);
                close(fd);
                int ends[2];
                if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1) ++wrong;
                close(ends[0]);
                close(ends[1]);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(engine.strays(), 0);
}

}  // namespace
}  // namespace uib::test

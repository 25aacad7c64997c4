#include "engine/daemon/listener.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace uib::daemon {

namespace {

constexpr int kBacklog = 1024;

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Listener::Listener(const std::string& path) : path_(path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        fail("socket path '" + path + "'");
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    if (const auto parent = std::filesystem::path(path).parent_path(); !parent.empty())
        std::filesystem::create_directories(parent);

    take_lock(path + ".lock");
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail("removing the stale socket " + path);
    socket_ = ipc::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_) fail("socket");
    if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        fail("binding " + path);
    // As /dev/infiniband's nodes are: whoever can reach the directory may use the devices.
    if (::chmod(path.c_str(), 0666) != 0) fail("chmod " + path);
    if (::listen(socket_.get(), kBacklog) != 0) fail("listening on " + path);
}

void Listener::take_lock(const std::string& lock_path) {
    while (true) {
        lock_ = ipc::UniqueFd(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!lock_) fail(lock_path);
        if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
            if (errno == EWOULDBLOCK)
                throw EngineRunning("another engine serves " + path_ +
                                    "; stop it, or give this one another socket (--socket)");
            fail(lock_path);
        }
        // An engine that was just stopping may have removed the file between the open and the lock.
        struct stat locked {
        }, present{};
        if (::fstat(lock_.get(), &locked) == 0 && ::stat(lock_path.c_str(), &present) == 0 &&
            locked.st_ino == present.st_ino)
            return;
    }
}

Listener::~Listener() {
    ::unlink(path_.c_str());
    // The lock file goes while the lock is held, so that no other engine can hold a lock on a file that is
    // gone.
    ::unlink((path_ + ".lock").c_str());
}

}  // namespace uib::daemon

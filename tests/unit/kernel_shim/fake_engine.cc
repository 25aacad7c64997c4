#include "tests/unit/kernel_shim/fake_engine.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "engine/ipc/control.h"

namespace uib::test {
namespace {

void send_reply(int connection, const ipc::RequestHeader& request, const void* body, std::size_t length,
                int fd) {
    ipc::ReplyHeader head{};
    head.magic = ipc::kProtocolMagic;
    head.version = ipc::kProtocolVersion;
    head.operation = request.operation;
    head.tag = request.tag;
    head.length = static_cast<std::uint32_t>(sizeof head + length);
    iovec parts[2] = {{&head, sizeof head}, {const_cast<void*>(body), length}};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    if (fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    }
    sendmsg(connection, &message, MSG_NOSIGNAL);
}

}  // namespace

FakeEngine::FakeEngine(const std::string& socket_path, std::string status)
    : socket_(socket_path), status_(std::move(status)) {
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    socket_.copy(name.sun_path, sizeof name.sun_path - 1);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 || listen(listener_, 64) != 0 ||
        pipe2(stop_pipe_, O_CLOEXEC) != 0)
        throw std::runtime_error("cannot listen at " + socket_);
    thread_ = std::thread([this] { serve(); });
}

FakeEngine::~FakeEngine() {
    [[maybe_unused]] const ssize_t ignored = write(stop_pipe_[1], "x", 1);
    thread_.join();
    for (const int fd : connections_) close(fd);
    for (const int fd : {listener_, stop_pipe_[0], stop_pipe_[1]}) close(fd);
    unlink(socket_.c_str());
}

std::vector<std::string> FakeEngine::peers() const {
    const std::lock_guard lock(mutex_);
    return peers_;
}

void FakeEngine::serve() {
    while (true) {
        std::vector<pollfd> waits = {{stop_pipe_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
        for (const int fd : connections_) waits.push_back({fd, POLLIN, 0});
        if (poll(waits.data(), waits.size(), -1) <= 0) continue;
        if (waits[0].revents != 0) return;
        if (waits[1].revents != 0) accept_peer();
        for (std::size_t i = 2; i < waits.size(); ++i) {
            if (waits[i].revents == 0 || answer(waits[i].fd)) continue;
            close(waits[i].fd);
            std::erase(connections_, waits[i].fd);
        }
    }
}

void FakeEngine::accept_peer() {
    sockaddr_un name{};
    socklen_t size = sizeof name;
    const int fd = accept4(listener_, reinterpret_cast<sockaddr*>(&name), &size, SOCK_CLOEXEC);
    if (fd < 0) return;
    connections_.push_back(fd);
    const std::lock_guard lock(mutex_);
    const std::size_t head = offsetof(sockaddr_un, sun_path) + 1;
    peers_.emplace_back(size > head ? std::string(name.sun_path + 1, size - head) : "");
}

bool FakeEngine::answer(int connection) {
    char message[ipc::kMaxMessageBytes];
    const ssize_t size = recv(connection, message, sizeof message, 0);
    if (size <= 0) return false;
    ipc::RequestHeader request{};
    if (static_cast<std::size_t>(size) >= sizeof request) std::memcpy(&request, message, sizeof request);
    if (request.magic != ipc::kProtocolMagic || request.length != static_cast<std::size_t>(size)) {
        ++strays_;
        return false;
    }
    if (request.operation == static_cast<std::uint16_t>(ipc::Operation::kHello)) {
        const ipc::HelloReply body{};
        send_reply(connection, request, &body, sizeof body, -1);
        return true;
    }
    const int text = memfd_create("status", MFD_CLOEXEC);
    const ipc::StatusReply body{status_.size()};
    if (write(text, status_.data(), status_.size()) == static_cast<ssize_t>(status_.size()))
        send_reply(connection, request, &body, sizeof body, text);
    close(text);
    return true;
}

daemon::TreeDevice sample_device(const std::string& name, unsigned index) {
    daemon::TreeDevice device;
    device.name = name;
    device.index = index;
    device.node_guid = 0x0211'22ff'fe33'4400 + index;
    device.sys_image_guid = device.node_guid;
    device.node_desc = "uib test";
    device.fw_ver = "0.1.0";
    device.board_id = "UIB0000000001";
    device.hca_type = "uib";
    device.hw_rev = "1";
    daemon::TreePort port;
    port.state = 4;
    port.phys_state = 5;
    port.lid = 1;
    port.sm_lid = 1;
    port.cap_mask = 0x10;
    port.gids = {{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0}, {}};
    port.pkeys = {0xffff, 0};
    port.counters = {{"port_xmit_packets", 5}, {"port_rcv_packets", 7}};
    port.hw_counters = {{"out_of_sequence", 0}};
    device.ports = {port};
    return device;
}

TemporaryDirectory::TemporaryDirectory() {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp");
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string file_text(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace uib::test

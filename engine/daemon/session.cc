#include "engine/daemon/session.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>

#include "engine/daemon/engine.h"
#include "engine/daemon/log.h"
#include "engine/daemon/operation_names.h"
#include "engine/daemon/privilege.h"
#include "engine/memory/helper_channel.h"

namespace uib::daemon {

namespace {

#ifndef SO_PEERPIDFD
constexpr int kPeerPidfd = 77;  // Linux 6.5; the headers of Debian 12 do not know it
#else
constexpr int kPeerPidfd = SO_PEERPIDFD;
#endif

ipc::UniqueFd open_peer_pidfd(int socket, pid_t pid) {
    int pidfd = -1;
    socklen_t length = sizeof pidfd;
    if (::getsockopt(socket, SOL_SOCKET, kPeerPidfd, &pidfd, &length) == 0) return ipc::UniqueFd(pidfd);
    // Older kernels: by number. The peer lives as long as its connection does, or the connection is hung up.
    return ipc::UniqueFd(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1);
}

std::uint64_t cookie_of(int socket) {
    std::uint64_t cookie = 0;
    socklen_t length = sizeof cookie;
    return ::getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &length) == 0 ? cookie : 0;
}

std::string command_of(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
    std::string name;
    std::getline(file, name);
    return name;
}

}  // namespace

Session::Session(Engine& engine, std::uint32_t id, ipc::UniqueFd socket)
    : engine_(engine), id_(id), socket_(std::move(socket)) {
    socklen_t length = sizeof credentials_;
    if (::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &credentials_, &length) != 0)
        credentials_.pid = 0;
    pidfd_ = open_peer_pidfd(socket_.get(), credentials_.pid);
    command_ = command_of(credentials_.pid);
}

Session::~Session() {
    leave();
}

void Session::leave() {
    if (wakeup_) engine_.lane().unwatch(wakeup_.get());
    if (client_ == nullptr) return;
    const Baton::Hold hold(engine_.baton());
    if (client_->space() != nullptr) client_->space()->mark_dead();
    if (context_ != nullptr) context_->remove_client(*client_);
    engine_.adapter().remove_client(*client_);
    client_.reset();
    context_.reset();
}

bool Session::protocol_error(std::string what) {
    ended_because_ = "protocol error: " + std::move(what);
    return false;
}

bool Session::on_readable() {
    Message message;
    while (true) {
        std::string why;
        switch (receive(socket_.get(), message, why)) {
            case Received::kNothing:
                return true;
            case Received::kClosed:
                return false;
            case Received::kBroken:
                return protocol_error(why);
            case Received::kMessage:
                if (!handle(message)) return false;
        }
    }
}

bool Session::handle(Message& message) {
    ipc::RequestHeader header{};
    if (message.length < sizeof header) return protocol_error("message cut short");
    std::memcpy(&header, message.bytes.data(), sizeof header);
    if (header.magic != ipc::kProtocolMagic) return protocol_error("wrong magic number");
    if (header.length != message.length)
        return protocol_error("length field differs from the message's length");
    if (header.tag != last_tag_ + 1) return protocol_error("request out of order");
    if (header.operation == 0 ||
        header.operation >= static_cast<std::uint16_t>(ipc::Operation::kOperationEnd))
        return protocol_error("unknown operation " + std::to_string(header.operation));
    last_tag_ = header.tag;
    const auto operation = static_cast<ipc::Operation>(header.operation);
    Reply reply;
    if (header.version != ipc::kProtocolVersion) {
        // Answered, so that the other side can tell its user; the reply's version says what is spoken here.
        log_warn("client {} ({}): speaks version {} of the protocol, this engine {}", credentials_.pid,
                 command_, header.version, ipc::kProtocolVersion);
        return answer(header, EPROTO, reply) && protocol_error("protocol version");
    }
    if (operation == ipc::Operation::kHello ? greeted_ : !greeted_)
        return protocol_error(greeted_ ? "a second hello" : "a request before hello");
    malformed_ = false;
    int status = 0;
    try {
        status = dispatch(operation, message, reply);
    } catch (const std::exception& error) {
        // No memory, or a table of the engine is full: this request fails, the engine lives on.
        log_error("client {} ({}): {}: {}", credentials_.pid, command_, operation_name(operation),
                  error.what());
        status = ENOMEM;
    }
    if (malformed_)
        return protocol_error(std::string("wrong size of a request ") + operation_name(operation));
    if (status != 0) log_refusal(operation, status);
    return answer(header, status, reply);
}

void Session::log_refusal(ipc::Operation operation, int error) const {
    log_info("client {} ({}): {} refused: {}", credentials_.pid, command_, operation_name(operation),
             std::strerror(error));
}

bool Session::answer(const ipc::RequestHeader& request, int status, Reply& reply) {
    std::vector<int> fds;
    if (client_ != nullptr && status == 0) fds = client_->arena().take_new_chunks();
    ipc::ReplyHeader header{};
    header.magic = ipc::kProtocolMagic;
    header.version = ipc::kProtocolVersion;
    header.operation = request.operation;
    header.tag = request.tag;
    header.status = status;
    header.new_chunks = static_cast<std::uint32_t>(fds.size());
    if (status == 0) fds.insert(fds.end(), reply.fds.begin(), reply.fds.end());
    header.length = static_cast<std::uint32_t>(sizeof header + (status == 0 ? reply.body.size() : 0));
    std::vector<std::byte> bytes;
    bytes.reserve(header.length);
    append_bytes(bytes, header);
    if (status == 0) bytes.insert(bytes.end(), reply.body.begin(), reply.body.end());
    if (fds.size() > ipc::kMaxMessageFds) return protocol_error("reply with too many descriptors");
    if (send(socket_.get(), bytes, fds)) return true;
    // A client that died while its request was served is no breach of anything.
    return errno == EPIPE || errno == ECONNRESET ? false
                                                 : protocol_error("the client does not take its replies");
}

// Hello.

int Session::hello(const ipc::HelloRequest& request, Message& message, Reply& reply) {
    ipc::HelloReply body{};
    std::snprintf(body.engine_version, sizeof body.engine_version, "%s", UIB_VERSION);
    body.engine_usable_cpus = engine_.page()->usable_cpus;
    if ((request.flags & ipc::kHelloCommand) != 0) {
        greeted_ = true;
        append_bytes(reply.body, body);
        return 0;
    }
    const std::string name(request.device, ::strnlen(request.device, sizeof request.device));
    verbs::Device* device = engine_.adapter().device_named(name);
    if (device == nullptr) return ENODEV;
    if (message.fds.size() != 3) return EINVAL;
    peer_cookie_ = cookie_of(message.fds[0].get());
    importing_ = (request.flags & ipc::kHelloImport) != 0;
    if (const int error = open_memory(request, message, body, reply); error != 0) {
        client_.reset();
        return error;
    }
    {
        const Baton::Hold hold(engine_.baton());
        context_ = engine_.make_context(*device);
        client_->set_device(*device);
        engine_.adapter().add_client(*client_);
    }
    greeted_ = true;
    body.context_id = context_->id();
    body.device_index = device->index();
    std::snprintf(body.device, sizeof body.device, "%s", name.c_str());
    append_bytes(reply.body, body);
    log_info("client {} ({}): opened {}, its memory {}", credentials_.pid, command_, name,
             body.memory_mode == static_cast<std::uint32_t>(ipc::MemoryMode::kRemote)
                 ? "is reached directly"
                 : "is copied by its helper thread, as the kernel lets nobody else");
    return 0;
}

int Session::open_memory(const ipc::HelloRequest& request, Message& message, ipc::HelloReply& body,
                         Reply& reply) {
    client_ = std::make_unique<verbs::Client>(
        id_, credentials_.pid, memory::MappedSpace::Credentials{credentials_.uid, credentials_.gid},
        message.take_fd(1));
    if (const int error = client_->start(); error != 0) return error;
    if (may_use_raw_packets(credentials_)) client_->allow_raw_packets();
    wakeup_ = ipc::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wakeup_ || !engine_.lane().watch(wakeup_.get())) return errno;
    reply.fds = {engine_.page().fd(), wakeup_.get()};
    body.doorbells = client_->doorbell_location();
    if (pidfd_ &&
        memory::ProcessSpace::can_reach(credentials_.pid, request.probe_address, request.probe_value)) {
        body.memory_mode = static_cast<std::uint32_t>(ipc::MemoryMode::kRemote);
        client_->set_space(std::make_shared<memory::ProcessSpace>(
            credentials_.pid, ipc::UniqueFd(::fcntl(pidfd_.get(), F_DUPFD_CLOEXEC, 0))));
        return 0;
    }
    auto helper = memory::HelperChannel::make(message.take_fd(2));
    if (helper == nullptr) return errno;
    body.memory_mode = static_cast<std::uint32_t>(ipc::MemoryMode::kHelper);
    reply.fds.push_back(helper->staging_fd());
    client_->set_space(std::make_shared<memory::ProcessSpace>(std::move(helper)));
    return 0;
}

int Session::import_context(Message& message, Reply& reply) {
    if (!importing_ || message.fds.empty()) return EINVAL;
    const Session* other = engine_.session_with_cookie(cookie_of(message.fds[0].get()));
    if (other == nullptr || other == this || other->context_ == nullptr) return EBADF;
    if (&other->context_->device() != &context_->device()) return ENODEV;
    importing_ = false;
    context_ = other->context_;
    ipc::ImportContextReply body{};
    body.context_id = context_->id();
    append_bytes(reply.body, body);
    return 0;
}

int Session::status(Reply& reply) {
    return reply_text("uib-status", engine_.status_json(), reply);
}

int Session::reply_text(const char* name, const std::string& text, Reply& reply) {
    ipc::UniqueFd file(::memfd_create(name, MFD_CLOEXEC));
    if (!file) return errno;
    if (::pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return EIO;
    append_bytes(reply.body, ipc::StatusReply{text.size()});
    reply.fds = {file.get()};
    reply.kept.push_back(std::move(file));
    return 0;
}

}  // namespace uib::daemon

// A session: one connection to the control socket, from hello to hang-up.
//
// It reads requests (message.h), checks their form, and answers each with one reply. What the request asks of
// objects is done by the session's context with the lane's baton held. A request of wrong form ends the
// session: the connection is closed and the client's objects go, as they do when the process dies. Runs on
// the control thread alone.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/daemon/message.h"
#include "engine/ipc/control_taps.h"
#include "engine/verbs/client.h"
#include "engine/verbs/context.h"

namespace uib::daemon {

class Engine;

/// A reply in the making: body bytes, and descriptors that go with it (lent; `kept` holds those that nobody
/// else keeps).
struct Reply {
    std::vector<std::byte> body;
    std::vector<int> fds;
    std::vector<ipc::UniqueFd> kept;
};

class Session {
  public:
    Session(Engine& engine, std::uint32_t id, ipc::UniqueFd socket);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    /// Reads and answers what is there. False when the session is over; ended_because() says why.
    bool on_readable();
    [[nodiscard]] const std::string& ended_because() const { return ended_because_; }

    [[nodiscard]] std::uint32_t id() const { return id_; }
    [[nodiscard]] int socket() const { return socket_.get(); }
    [[nodiscard]] int pidfd() const { return pidfd_.get(); }
    [[nodiscard]] int pid() const { return credentials_.pid; }
    [[nodiscard]] const std::string& command() const { return command_; }
    [[nodiscard]] verbs::Client* client() const { return client_.get(); }
    [[nodiscard]] verbs::Context* context() const { return context_.get(); }
    /// Identifies the client's end of the connection; 0 if it was not shown.
    [[nodiscard]] std::uint64_t peer_cookie() const { return peer_cookie_; }

  private:
    bool handle(Message& message);
    bool protocol_error(std::string what);
    void log_refusal(ipc::Operation operation, int error) const;
    bool answer(const ipc::RequestHeader& request, int status, Reply& reply);

    // Each returns 0 or an errno; session_requests.cc and session_taps.cc have the tables.
    int dispatch(ipc::Operation operation, Message& message, Reply& reply);
    int dispatch_memory(ipc::Operation operation, Message& message, Reply& reply);
    int dispatch_queues(ipc::Operation operation, Message& message, Reply& reply);
    int dispatch_scaling(ipc::Operation operation, Message& message, Reply& reply);
    int dispatch_xrc(ipc::Operation operation, Message& message, Reply& reply);
    int dispatch_taps(ipc::Operation operation, Message& message, Reply& reply);
    template <typename In, typename Out, typename F>
    int call(const Message& message, Reply& reply, F&& f);

    int hello(const ipc::HelloRequest& request, Message& message, Reply& reply);
    int open_memory(const ipc::HelloRequest& request, Message& message, ipc::HelloReply& body, Reply& reply);
    int import_context(Message& message, Reply& reply);
    int status(Reply& reply);
    int start_capture(const ipc::StartCaptureRequest& request, Message& message);
    int stop_capture(ipc::StopCaptureReply& reply);
    /// A long text goes as a file.
    static int reply_text(const char* name, const std::string& text, Reply& reply);
    void leave();

    Engine& engine_;
    std::uint32_t id_;
    ipc::UniqueFd socket_;
    ipc::UniqueFd pidfd_;
    ipc::UniqueFd wakeup_;
    ucred credentials_{};
    std::string command_;
    std::string ended_because_ = "the client hung up";
    std::uint32_t last_tag_ = 0;
    bool greeted_ = false;
    bool importing_ = false;
    bool malformed_ = false;  ///< the request under way had the wrong size
    std::uint64_t peer_cookie_ = 0;
    std::unique_ptr<verbs::Client> client_;
    std::shared_ptr<verbs::Context> context_;
};

}  // namespace uib::daemon

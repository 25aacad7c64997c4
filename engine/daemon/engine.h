// The engine: control socket, sessions, the lane and what the tree in the file system shows.
//
// Threads: the control thread (run()) accepts connections, reads requests, notices deaths (a hang-up, or the
// pidfd of a client whose forked children still hold the socket), retries pipes that were full and keeps the
// tree current; the lane (lane.h) moves packets. They share the adapter under the baton.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "engine/daemon/baton.h"
#include "engine/daemon/capture_run.h"
#include "engine/daemon/config.h"
#include "engine/daemon/device_tree/device_tree.h"
#include "engine/daemon/engine_page.h"
#include "engine/daemon/lane.h"
#include "engine/daemon/listener.h"
#include "engine/daemon/session.h"
#include "engine/daemon/uplinks.h"

namespace uib::daemon {

class Engine {
  public:
    /// Throws std::system_error, EngineRunning (listener.h) and what DeviceTree throws.
    explicit Engine(const Config& config);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Serves until `signal_fd` (a signalfd) becomes readable.
    void run(int signal_fd);

    // For sessions.
    [[nodiscard]] verbs::Adapter& adapter() { return adapter_; }
    [[nodiscard]] Baton& baton() { return baton_; }
    [[nodiscard]] EnginePage& page() { return page_; }
    [[nodiscard]] Lane& lane() { return lane_; }
    std::shared_ptr<verbs::Context> make_context(verbs::Device& device);
    /// The session whose client's end of the connection has this cookie, or nullptr.
    [[nodiscard]] Session* session_with_cookie(std::uint64_t cookie) const;
    [[nodiscard]] std::string status_json();
    /// Which runs, or has ended while its session is still there; nullptr else.
    [[nodiscard]] CaptureRun* capture() { return capture_.get(); }
    /// There must be none.
    void start_capture(std::uint32_t session, const net::CaptureOptions& options, ipc::UniqueFd file,
                       ipc::UniqueFd ended);

  private:
    Engine(const Config& config, OpenedLinks links);
    int wait(std::span<epoll_event> events);
    void accept_all();
    void admit(ipc::UniqueFd socket);
    void end_session(std::uint32_t id, const std::string& why);
    void look_after_clients();
    void publish_tree();
    void follow_ports();
    void update_counters();
    bool watch(int fd, std::uint64_t tag, std::uint32_t events);
    void on_session_event(std::uint64_t tag);

    std::string socket_path_;
    std::uint64_t started_;
    Listener listener_;
    verbs::Adapter adapter_;
    Baton baton_;
    EnginePage page_;
    ipc::UniqueFd attention_;
    Lane lane_;
    DeviceTree tree_;
    ipc::UniqueFd epoll_;
    std::map<std::uint32_t, std::unique_ptr<Session>> sessions_;
    std::unique_ptr<CaptureRun> capture_;
    std::uint32_t next_session_ = 1;
    std::uint32_t next_context_ = 1;
    std::uint64_t tree_packets_ = 0;  ///< packets when the tree's counters were last written
    std::uint64_t ended_sessions_ = 0;
    std::uint64_t protocol_errors_ = 0;
    bool backlog_ = false;
    bool expecting_ = false;  ///< a request came just now: another may follow
};

}  // namespace uib::daemon

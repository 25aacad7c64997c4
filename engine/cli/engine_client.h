// A connection of the command to the engine (engine/ipc/control.h). One thread; every call waits a few
// seconds at most.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/ipc/control.h"
#include "engine/ipc/control_taps.h"
#include "engine/ipc/unique_fd.h"

namespace uib::cli {

class EngineClient {
  public:
    /// Connects and says hello. Throws Failure with the line for the user when no engine answers or it
    /// refuses.
    explicit EngineClient(const std::string& socket);

    /// The engine's report of itself, as JSON text.
    std::string status();

    /// These throw Refusal, too.
    void start_capture(const ipc::StartCaptureRequest& request, int file, int ended);
    ipc::StopCaptureReply stop_capture();
    /// Returns the rule's identifier.
    std::uint32_t add_fault(const ipc::AddFaultRequest& request);
    /// 0: all.
    void remove_fault(std::uint32_t id);
    /// The rules as JSON text.
    std::string faults();

    [[nodiscard]] int descriptor() const { return connection_.get(); }

  private:
    struct Reply {
        std::vector<char> body;
        std::vector<ipc::UniqueFd> descriptors;
    };
    Reply call(ipc::Operation operation, const void* body, std::size_t length,
               std::span<const int> descriptors = {});
    /// The text in the memfd that the reply carries.
    std::string call_for_text(ipc::Operation operation);
    Reply receive(ipc::Operation operation);

    const std::string socket_;
    ipc::UniqueFd connection_;
    std::uint32_t tag_ = 0;
};

/// Whether an engine answers at the socket.
bool engine_answers(const std::string& socket);

}  // namespace uib::cli

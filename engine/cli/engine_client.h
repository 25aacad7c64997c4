// A connection of the command to the engine (engine/ipc/control.h). One thread; every call waits a few
// seconds at most.
#pragma once

#include <string>
#include <vector>

#include "engine/ipc/control.h"
#include "engine/ipc/unique_fd.h"

namespace uib::cli {

class EngineClient {
  public:
    /// Connects and says hello. Throws Failure with the line for the user when no engine answers or it
    /// refuses.
    explicit EngineClient(const std::string& socket);

    /// The engine's report of itself, as JSON text.
    std::string status();

  private:
    struct Reply {
        std::vector<char> body;
        std::vector<ipc::UniqueFd> descriptors;
    };
    Reply call(ipc::Operation operation, const void* body, std::size_t length);
    Reply receive(ipc::Operation operation);

    const std::string socket_;
    ipc::UniqueFd connection_;
    std::uint32_t tag_ = 0;
};

/// Whether an engine answers at the socket.
bool engine_answers(const std::string& socket);

}  // namespace uib::cli

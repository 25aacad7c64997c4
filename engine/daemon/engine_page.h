// The page that all clients see read-only (ipc::EnginePage): made, mapped and sealed here.
#pragma once

#include "engine/ipc/doorbell.h"
#include "engine/ipc/unique_fd.h"

namespace uib::daemon {

class EnginePage {
  public:
    /// Throws std::system_error.
    EnginePage();
    ~EnginePage();
    EnginePage(const EnginePage&) = delete;
    EnginePage& operator=(const EnginePage&) = delete;

    ipc::EnginePage* operator->() const { return page_; }
    /// To hand to clients; sealed so that only the engine's mapping can write.
    [[nodiscard]] int fd() const { return fd_.get(); }

  private:
    ipc::UniqueFd fd_;
    ipc::EnginePage* page_ = nullptr;
};

}  // namespace uib::daemon

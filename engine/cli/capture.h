// `uib capture`: the engine's packets into a pcapng file or pipe, until a signal or a limit ends it.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace uib::cli {

class CaptureCommand {
  public:
    explicit CaptureCommand(CLI::App& app);
    [[nodiscard]] bool chosen() const;
    /// Exit status. Throws Failure.
    int run();

  private:
    CLI::App* app_;
    std::string file_;
    std::string device_;
    std::string qp_;
    std::uint32_t snap_bytes_ = 0;
    std::uint64_t count_ = 0;
};

}  // namespace uib::cli

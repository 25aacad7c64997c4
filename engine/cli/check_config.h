// `uib check-config`: what the engine would say of a configuration.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace uib::cli {

class CheckConfigCommand {
  public:
    explicit CheckConfigCommand(CLI::App& app);
    [[nodiscard]] bool chosen() const;
    /// Exit status: 1 if the file is wrong. What is only doubtful is told on standard error.
    [[nodiscard]] int run() const;

  private:
    CLI::App* app_;
    std::string file_;
};

}  // namespace uib::cli

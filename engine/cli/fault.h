// `uib fault`: adds, lists and removes fault rules of a running engine.
#pragma once

#include <string>

#include "engine/cli/fault_rule.h"

namespace CLI {
class App;
}

namespace uib::cli {

class FaultCommand {
  public:
    explicit FaultCommand(CLI::App& app);
    [[nodiscard]] bool chosen() const;
    /// Exit status. Throws Failure.
    int run();

  private:
    void define_add();
    [[nodiscard]] bool adds() const;
    [[nodiscard]] bool lists() const;

    CLI::App* app_;
    CLI::App* add_;
    CLI::App* list_;
    CLI::App* remove_;
    FaultText rule_;
    bool as_json_ = false;
    std::string which_;
};

/// The engine's list of rules as a table.
std::string faults_table(const std::string& json_text);

}  // namespace uib::cli

// `uib status`: the engine's JSON report as tables for people.
#pragma once

#include <string>

namespace uib::cli {

/// Throws Failure when the text is not the report that it should be.
std::string status_tables(const std::string& json_text);

/// The report itself, indented.
std::string status_json(const std::string& json_text);

}  // namespace uib::cli

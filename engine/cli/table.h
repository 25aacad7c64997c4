// Tables of text.
#pragma once

#include <string>
#include <vector>

namespace uib::cli {

using Row = std::vector<std::string>;

/// Columns as wide as their widest cell, two spaces apart.
std::string table(const std::vector<Row>& rows);

}  // namespace uib::cli

// Tables on a terminal.
#pragma once

#include <string>
#include <vector>

namespace kvjit::tool {

/// Rows in columns of equal width, two blanks between them and none at a line's end. Precondition: rows are of one
/// length.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

}  // namespace kvjit::tool

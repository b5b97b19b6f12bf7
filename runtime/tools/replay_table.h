// The table of a replay's verdicts.
#pragma once

#include <string>
#include <vector>

#include "compare.h"

namespace kvjit::tool {

/// A file's name without its folder and ".safetensors".
std::string name_in_table(const std::string& file);

/// "1.2e-07"; "-": a failure that is no quantity, as of codes.
std::string error_in_table(const Verdict& verdict);

/// The widest file name decides the first column; the spec comes last because it is long and ragged.
class ReplayTable {
public:
    explicit ReplayTable(const std::vector<std::string>& files);

    void header() const;
    void row(const std::string& file, const std::string& op, const std::string& error, const std::string& result,
             const std::string& spec) const;

private:
    std::size_t width_ = 4;
};

}  // namespace kvjit::tool

// What `kvjit compare` reads of the JSON that `kvjit bench` prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "result.h"

namespace kvjit::tool {

/// What it needs of a row.
struct BenchFigure {
    std::string spec, batch;
    std::int64_t layers = 1;
    double milliseconds = 0;
    double share = 0;  // of the limit that is nearer
};
struct BenchFigures {
    std::string machine;  // device and target
    std::vector<BenchFigure> rows;
};

/// `name`: the file's, for messages. Errors: the text is nothing that bench_json made; which row and field aren't, what
/// they are, and what is expected.
Result<BenchFigures> read_bench_json(const std::string& text, const std::string& name);

}  // namespace kvjit::tool

// What `kvjit bench` prints, and `kvjit compare` reads.
#pragma once

#include <string>
#include <vector>

#include "bench/measure.h"
#include "json.h"

namespace kvjit::tool {

inline constexpr std::string_view kBenchFormat = "kvjit.bench.1";

struct BenchRow {
    std::string spec, batch;
    std::int64_t layers = 1, new_tokens = 0;
    std::string arithmetic;  // what its limit does: Device::arithmetic()
    Measurement measured;
};

struct BenchReport {
    std::string device, target;
    std::string notes;  // Device::notes(), and what is unusual of the kernels
    std::vector<BenchRow> rows;
};

std::string bench_text(const BenchReport& report);
Json bench_json(const BenchReport& report);

/// What `kvjit compare` needs of a row.
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
/// `name`: for messages. Errors: the text is no JSON that bench_json made, with the reason.
Result<BenchFigures> read_bench_json(const std::string& text, const std::string& name);

}  // namespace kvjit::tool

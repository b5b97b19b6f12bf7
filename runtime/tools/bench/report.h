// What `kvjit bench` prints.
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
    std::string against;  // the folder of the other kernels' templates; "": there are none
    std::string notes;    // Device::notes(), and what is unusual of the kernels
    std::vector<BenchRow> rows;
};

std::string bench_text(const BenchReport& report);
Json bench_json(const BenchReport& report);

}  // namespace kvjit::tool

// What the machine can do at all, for the comparison with other engines. First prints a line of JSON, the unit of each
// limit; then, for each line that names one, how many 1e9 of them a second, 0 where the machine has no such
// instruction.
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>

#include "limits/arithmetic.h"
#include "limits/bandwidth.h"

namespace {

constexpr std::size_t kReadBytes = std::size_t{512} << 20;

struct Limit {
    const char* name;
    const char* unit;
    std::function<double(int threads)> measure;
};

double read(kvjit::limits::ReadWay way, int threads) {
    static kvjit::limits::ReadLoop loop(kReadBytes, threads);
    return loop.measure(way);
}

const Limit kLimits[] = {
    {"read, plain", "GB/s", [](int threads) { return read(kvjit::limits::ReadWay::kPlain, threads); }},
    {"read, prefetched", "GB/s", [](int threads) { return read(kvjit::limits::ReadWay::kPrefetched, threads); }},
    {"read, streams", "GB/s", [](int threads) { return read(kvjit::limits::ReadWay::kStreams, threads); }},
    {"float32 multiply-adds", "GFLOP/s", kvjit::limits::measure_arithmetic},
    {"bfloat16 pairs", "GFLOP/s", kvjit::limits::measure_bfloat16_pairs},
    {"bfloat16 tiles", "GFLOP/s", kvjit::limits::measure_bfloat16_tiles},
};

void print_units() {
    const char* separator = "{";
    for (const Limit& limit : kLimits) {
        std::printf("%s\"%s\": \"%s\"", separator, limit.name, limit.unit);
        separator = ", ";
    }
    std::puts("}");
}

double measure(const std::string& name) {
    for (const Limit& limit : kLimits) {
        if (name == limit.name) return limit.measure(kvjit::limits::usable_cores()) / 1e9;
    }
    return 0;
}

}  // namespace

int main() {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    print_units();
    for (std::string name; std::getline(std::cin, name);) std::printf("%.4g\n", measure(name));
    return 0;
}

#include "arithmetic.h"

#include <numeric>
#include <vector>

#include "register_loop.h"
#include "together.h"

namespace demo {
namespace {

constexpr long kRounds = 4'000'000;

double (*widest_loop())(long) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return register_loop_512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return register_loop_256;
    return register_loop_128;
}

}  // namespace

double measure_arithmetic(int threads) {
    double (*const loop)(long) = widest_loop();
    std::vector<double> operations(static_cast<std::size_t>(threads));
    const double seconds = run_together(threads, [&](int i) { operations[i] = loop(kRounds); });
    return std::accumulate(operations.begin(), operations.end(), 0.0) / seconds;
}

}  // namespace demo

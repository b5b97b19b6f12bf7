#include "limits/arithmetic.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <numeric>
#include <vector>

#include "limits/bfloat16_loops.h"
#include "limits/register_loop.h"
#include "limits/together.h"

namespace kvjit::limits {
namespace {

using Loop = double (*)(long rounds);

constexpr long kRounds = 4'000'000, kTileRounds = 1'000'000;

Loop widest_loop() {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return register_loop_512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return register_loop_256;
    return register_loop_128;
}

/// Linux gives a process the tiles' registers when it has asked for them.
bool has_tiles() {
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    __builtin_cpu_init();
    return __builtin_cpu_supports("amx-bf16") && ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_pairs() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bf16");
}

double measure_loop(int threads, Loop loop, long rounds) {
    std::vector<double> operations(static_cast<std::size_t>(threads));
    const double seconds = run_together(threads, [&](int i) { operations[i] = loop(rounds); });
    return std::accumulate(operations.begin(), operations.end(), 0.0) / seconds;
}

}  // namespace

double measure_arithmetic(int threads) {
    return measure_loop(threads, widest_loop(), kRounds);
}

double measure_bfloat16_pairs(int threads) {
    return has_pairs() ? measure_loop(threads, bfloat16_pairs_loop, kRounds) : 0;
}

double measure_bfloat16_tiles(int threads) {
    return has_tiles() ? measure_loop(threads, bfloat16_tiles_loop, kTileRounds) : 0;
}

}  // namespace kvjit::limits

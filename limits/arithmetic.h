#pragma once

namespace kvjit::limits {

/// Floating-point operations a second, a multiply-add counted as two, of threads that do nothing else: float32 in
/// registers, with the widest vectors that the machine has. The yardstick for prefill. Throws as run_together does.
double measure_arithmetic(int threads);

/// The same with products of bfloat16 that are added in float32: pairs in AVX-512's registers (VDPBF16PS), and AMX's
/// tiles, which are loaded anew for each product, from the first-level cache. 0 where the machine has no such
/// instruction.
double measure_bfloat16_pairs(int threads);
double measure_bfloat16_tiles(int threads);

}  // namespace kvjit::limits

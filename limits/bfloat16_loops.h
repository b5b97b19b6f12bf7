// Loops of AVX-512's and AMX's products of bfloat16, for machines that have them.
#pragma once

namespace kvjit::limits {

/// Each does `rounds` rounds and returns the floating-point operations that they were, two for a multiply-add.
double bfloat16_pairs_loop(long rounds);
/// Linux must have given the process the tiles' registers.
double bfloat16_tiles_loop(long rounds);

}  // namespace kvjit::limits

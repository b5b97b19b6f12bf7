// The text of the loops that cuda/loops.h runs.
#pragma once

#include <cstdint>
#include <string>

namespace kvjit::limits {

/// What each kernel takes, as its one parameter.
struct LoopParameters {
    std::uint64_t memory;  // what is read; factors of matrices
    std::uint64_t sums;    // a word for each thread, which keeps what it computed
    std::uint32_t rounds;
    std::uint32_t turns;  // of a round, when memory is read
    float factor, term;   // of multiply-adds
};

inline constexpr char kReadKernel[] = "kvjit_limits_read", kMultiplyAddKernel[] = "kvjit_limits_multiply_add",
                      kMatricesKernel[] = "kvjit_limits_matrices";

inline constexpr unsigned kLoopThreads = 256;  // of a block

/// A turn: loads of 16 bytes by each thread. Threads of the grid lie side by side, and the next load of each of them is
/// behind the last one's.
inline constexpr int kLoads = 4, kLoadBytes = 16;
/// A round: so many chains of multiply-adds in each thread, none of which waits for another, and so many links of each.
inline constexpr int kChains = 16, kLinks = 4;
/// The same for products of 16 by 16 and 16 by 8 matrices, in each warp. Factors are kFactorBytes of float16 for each
/// thread of a block, the same for all blocks.
inline constexpr int kMatrixChains = 8, kMatrixLinks = 2, kFactorBytes = 24;

/// PTX of the three kernels, for sm_80 and everything newer.
///   read          every 32-bit word of `memory`, `turns` turns in each of `rounds` rounds; sums[thread] is their sum
///   multiply_add  x = x * factor + term, where x begins with the chain's number; sums[thread] is the sum of all x
///   matrices      X = X + A B in float32, where X begins with the chain's number; the sum of all X
std::string loops_ptx();

}  // namespace kvjit::limits

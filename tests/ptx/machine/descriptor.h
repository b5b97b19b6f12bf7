// Matrices in shared memory as wgmma's descriptors tell of them.
#pragma once

#include <vector>

#include "ptx/machine/kernel.h"

namespace kvjit::ptx {

/// Which of A and B a descriptor is of: `rows` along M or N, 16 numbers of 16 bits along K.
struct MatrixShape {
    char name;
    u32 rows;
    bool is_transposed;  // MN-major, else K-major
};

/// Where a matrix lies, in pieces of 16 bytes: 8 numbers that follow each other in the leading dimension. Numbers are
/// grouped by 8 rows, each of which has 16 pieces: K-major, piece 2 r + c has k = 8 c ... of row r; MN-major, piece k
/// has all 8 rows' numbers of that k.
///
/// Errors: Fault for a descriptor that the ISA does not define, 9.7.15.5.1.2.
std::vector<u32> pieces_of(u64 descriptor, const MatrixShape& shape);

}  // namespace kvjit::ptx

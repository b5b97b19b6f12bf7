// Tensor cores: ldmatrix and mma, with registers laid out as the PTX ISA says, 9.7.14.
#pragma once

#include "ptx/machine/warp.h"

namespace kvjit::ptx {

/// ldmatrix.sync.aligned.m8n8.x4[.trans].shared.b16
void load_matrices(Warp& warp, const Instruction& in);
void load_matrices_transposed(Warp& warp, const Instruction& in);

/// mma.sync.aligned.m16n8k16.row.col.f32.T.T.f32
void multiply_float16(Warp& warp, const Instruction& in);
void multiply_bfloat16(Warp& warp, const Instruction& in);

/// c + the products of a[i] and b[i], float16 numbers, as a tensor core adds them. For tests.
float sum_of_products(const u16 (&a)[16], const u16 (&b)[16], float c, Sums sums);

}  // namespace kvjit::ptx

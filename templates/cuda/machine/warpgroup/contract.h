// Matrix products of warpgroups, which GPUs of compute capability 9.0 alone have: code for sm_90a. Rendering replaces
// an include of this file by cuda/machine/warpgroup/ptx.h (GPUs) or cuda/machine/warpgroup/emulated.h (the CPU).
//
// A warpgroup is 4 consecutive warps, the first of which has a number that is a multiple of 4. "Together" means all 128
// threads of it. Of a product's 64 rows warp w has 16, from row 16 * (w % 4) on.
//
// Matrices in shared memory are stripes of 64 columns of 16 bits, in rows of 128 bytes, one row after the other; a
// stripe begins at a multiple of 1024 bytes. In row r the 16 bytes of columns 8c to 8c + 7 lie at place c ^ r % 8, so
// that the same columns of 8 rows are in different banks (swizzled_byte).
//
// Products run in the background, beside the warps' other work. Together:
//   void begin_products()                  before the first product, and after any other access to the registers of
//                                          accumulators and left operands, which must be pinned in between
//   void end_products()                    makes a group of the products since the last call
//   void wait_products<kPending>()         until all but the kPending newest groups are done. Before that nothing may
//                                          touch their registers, nor write what they read in shared memory; after it
//                                          registers must be pinned. ptxas moves it up to the begin of its block of
//                                          code: what is to run beside the products ends with a branch
// By each thread:
//   void pin(float (&c)[kTiles][4]), pin(u32 (&a)[4])
//                                          the compiler moves no access to these registers past it; ptxas does, and
//                                          knows about products
//   void publish_to_products()             after the thread's own writes to shared memory, copies that have arrived
//                                          included, and before a barrier, after which products may read them
//   void change_over<kThreads>()           a barrier of the block, which has kThreads threads. Its warps may each be
//                                          at another call of it: a warp's n-th call waits for the n-th of all others
//
//   SharedMatrix shared_matrix(const char* start, i32 stripe)
//                                          an operand in shared memory. start: where its first column would be in its
//                                          first row, were it not swizzled; that row's number is a multiple of 8.
//                                          stripe: bytes from stripe to stripe
//   SharedMatrix operator+(SharedMatrix matrix, i32 bytes)
//                                          the matrix that begins `bytes` later, a multiple of 16
//
// Products, together. T: f16_t or bf16_t; kTiles: of 8 columns, 8 or 16; c as mma_16x8x16 has it, tiles side by side:
//   void multiply_transposed<T, kAdd>(float (&c)[kTiles][4], SharedMatrix a, SharedMatrix b)
//                                          c = a * b^T, or with kAdd c += it. a: 64 rows of 16 columns, the
//                                          warpgroup's; b: kTiles * 8 rows of 16 columns. The columns are of one stripe
//   void multiply<T>(float (&c)[kTiles][4], const u32 (&a)[4], SharedMatrix b)
//                                          c += a * b. a: the warp's 16 rows of 16, as mma_16x8x16 has it; b: 16 rows
//                                          of kTiles * 8 columns, from the beginning of a stripe on
#pragma once

#ifdef __CUDACC_RTC__
#include "cuda/machine/warpgroup/ptx.h"
#else
#include "cuda/machine/warpgroup/emulated.h"
#endif

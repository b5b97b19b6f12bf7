// All that CUDA kernels use of the machine. Rendering replaces an include of this file by cuda/machine/ptx.h (GPUs) or
// cuda/machine/emulated.h (the CPU), which both define every name below. Beside these names kernels are plain C++.
//
// KVJIT_ENTRY(threads, blocks)  in front of a kernel's name: blocks of `threads` threads, of which `blocks` at least
//                               fit into a multiprocessor's registers. Both are constants.
// KVJIT_PARAM(type)             in front of the kernel's only parameter, a struct of common/abi.h.
//
// Warps are 32 consecutive threads; a thread's lane is thread_index() % 32. "Together" means that all lanes of the warp
// call it at the same place (or all threads of the block, for barrier): no thread may have returned before.
//
// Where am I
//   i32 thread_index()                     number of the thread in its block
//   i64 block_x(), block_y()               number of the block in the grid
//   i32 opaque(i32 v)                      v, hidden from the optimiser: what a loop computes from it stays in the loop
//                                          instead of taking registers before it
//
// Together
//   void barrier()                         waits for the block, and orders its accesses to memory
//   void warp_barrier()                    waits for the warp, and orders its lanes' accesses. Nothing else does: lanes
//                                          that exchange data through memory need one between write and read, and
//                                          between read and next write
//   T shuffle_xor(T v, i32 mask)           v of lane (lane ^ mask). T: float, i32, u32
//   T shuffle(T v, i32 source_lane)        v of another lane; each may name its own source
//   u32 ballot(bool v)                     bit l: v of lane l
//   T& keep_shared(T& object)              `object`, of shared memory and the same in all lanes, with its address in a
//                                          register: else each use in a loop may compute that anew
//
// Memory
//   T& shared_memory<T>()                  the block's dynamic shared memory, aligned to 128, as a T
//   void load4/load8/load16(u32 (&to)[1 | 2 | 4], const void* from)
//   void store4/store8/store16(void* to, const u32 (&from)[1 | 2 | 4])
//                                          one access of 4, 8 or 16 bytes, aligned to as many, in any memory
//   void copy_async<kBytes>(void* shared, const void* global, bool valid)
//                                          copies kBytes (4, 8, 16) to shared memory in the background; both addresses
//                                          are multiples of kBytes. valid false: writes zeros, doesn't read `global`
//   void commit_copies()                   makes a group of the copies that this thread began since its last commit
//   void wait_copies<kPending>()           until all but the kPending newest groups of this thread have arrived; other
//                                          threads see them after a barrier of both
//   u32 atomic_add(unsigned* at, unsigned v)   adds, returns the former value; orders nothing
//   void thread_fence()                    orders the accesses before it before those after it, for the whole GPU
//
// Matrices, by the whole warp together; registers as PTX's mma.m16n8k16 and ldmatrix have them
//   void mma_16x8x16<T>(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2])
//                                          c += a * b: a (16 x 16, by rows) and b (16 x 8, by columns) of T, f16_t or
//                                          bf16_t
//   void load_matrices(u32 (&to)[4], const void* shared_row)
//                                          four 8 x 8 matrices of 16 bits; lane l gives the address of row l % 8 of
//                                          matrix l / 8, 16 bytes, aligned
//   void load_matrices_transposed(u32 (&to)[4], const void* shared_row)
//
// float16, as bits; the low half of a u32 is the first of a pair. Rounded to nearest even; a NaN's bits are unspecified
//   float half_to_float(u16 v)
//   u16 float_to_half(float v)             overflow gives infinity
//   u32 pack_halves(float low, float high)
//   u32 half2_sub(u32 a, u32 b), half2_mul(u32 a, u32 b)
//   u32 half2_negate(u32 v)                of an operand it takes no instruction
//   u32 half2_fma(u32 a, u32 b, u32 c)     a*b + c, rounded once
//
// bfloat16 likewise
//   float bfloat16_to_float(u16 v)
//   u16 float_to_bfloat16(float v)         overflow gives infinity
//   u32 pack_bfloat16s(float low, float high)
//   u32 bfloat162_fma(u32 a, u32 b, u32 c), bfloat162_negate(u32 v)
//
// Bits
//   u32 permute_bytes(u32 a, u32 b, u32 selector)       byte i of the result is byte (selector >> 4*i & 7) of (b, a), a
//                                                       being bytes 0..3; bit 3 of a selector's nibble is 0
//   u32 and_xor(u32 v, u32 mask, u32 flip) (v & mask) ^ flip in one instruction, also where two operands are constants
//   i32 count_ones(u32 v)                  how many bits are set
//
// float32
//   float fma(float a, float b, float c)   a*b + c, rounded once
//   float reciprocal(float v)              1/v to 2^-22, relative, for |v| from 2^-126 to 2^126; smaller
//                                          ones may count as 0, larger ones as infinity
//   float exp2(float v)                    2^v to 2^-22; results below 2^-126 may be 0. exp2(-inf) is 0, exp2(0) is 1
//   float log2(float v)                    to 2^-21, relative or, for v near 1, absolute
//   float max_nan(float a, float b)        the larger; NaN if either is
#pragma once

#ifdef __CUDACC_RTC__
#include "cuda/machine/ptx.h"
#else
#include "cuda/machine/emulated.h"
#endif

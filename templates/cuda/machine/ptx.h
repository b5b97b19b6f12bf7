// cuda/machine/contract.h for GPUs from sm_80 on: NVRTC's builtins and inline PTX.
#pragma once

#include "common/types.h"

#define KVJIT_ENTRY(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
#define KVJIT_PARAM(type) const __grid_constant__ type

namespace kvjit {

// ---- Where am I ----------------------------------------------------------------------------------------------------

KVJIT_INLINE i32 thread_index() {
    return static_cast<i32>(threadIdx.x);
}
KVJIT_INLINE i64 block_x() {
    return blockIdx.x;
}
KVJIT_INLINE i64 block_y() {
    return blockIdx.y;
}
KVJIT_INLINE i32 opaque(i32 v) {
    asm volatile("" : "+r"(v));
    return v;
}

// ---- Together ------------------------------------------------------------------------------------------------------

inline constexpr u32 kAllLanes = 0xffffffff;

KVJIT_INLINE void barrier() {
    __syncthreads();
}
KVJIT_INLINE void warp_barrier() {
    __syncwarp();
}

template <class T>
KVJIT_INLINE T shuffle_xor(T v, i32 mask) {
    return __shfl_xor_sync(kAllLanes, v, mask);
}
template <class T>
KVJIT_INLINE T shuffle(T v, i32 source_lane) {
    return __shfl_sync(kAllLanes, v, source_lane);
}
KVJIT_INLINE u32 ballot(bool v) {
    return __ballot_sync(kAllLanes, v);
}

// ---- Memory --------------------------------------------------------------------------------------------------------

extern __shared__ __align__(128) char kvjit_shared_bytes[];

template <class T>
KVJIT_INLINE T& shared_memory() {
    static_assert(alignof(T) <= 128);
    return *reinterpret_cast<T*>(kvjit_shared_bytes);
}

/// `kCount` words, accessed at once.
template <int kCount>
struct alignas(4 * kCount) Words {
    u32 word[kCount];
};

template <int kCount>
KVJIT_INLINE void load_words(u32 (&to)[kCount], const void* from) {
    const Words<kCount> words = *static_cast<const Words<kCount>*>(from);
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = words.word[i];
}
template <int kCount>
KVJIT_INLINE void store_words(void* to, const u32 (&from)[kCount]) {
    Words<kCount> words;
#pragma unroll
    for (int i = 0; i < kCount; ++i) words.word[i] = from[i];
    *static_cast<Words<kCount>*>(to) = words;
}

KVJIT_INLINE void load4(u32 (&to)[1], const void* from) {
    load_words(to, from);
}
KVJIT_INLINE void load8(u32 (&to)[2], const void* from) {
    load_words(to, from);
}
KVJIT_INLINE void load16(u32 (&to)[4], const void* from) {
    load_words(to, from);
}
KVJIT_INLINE void store4(void* to, const u32 (&from)[1]) {
    store_words(to, from);
}
KVJIT_INLINE void store8(void* to, const u32 (&from)[2]) {
    store_words(to, from);
}
KVJIT_INLINE void store16(void* to, const u32 (&from)[4]) {
    store_words(to, from);
}

/// The address in the form that instructions on shared memory take.
KVJIT_INLINE u32 shared_address(const void* shared) {
    return static_cast<u32>(__cvta_generic_to_shared(shared));
}

template <class T>
KVJIT_INLINE T& keep_shared(T& object) {
    // Neither compiler knows what a lane will give.
    const u32 at = __shfl_sync(kAllLanes, shared_address(&object), 0);
    return *static_cast<T*>(__cvta_shared_to_generic(at));
}

template <int kBytes>
KVJIT_INLINE void copy_async(void* shared, const void* global, bool valid) {
    static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
    const u32 to = shared_address(shared);
    const u64 from = __cvta_generic_to_global(global);
    const i32 read = valid ? kBytes : 0;  // bytes that aren't read are written as zeros
    if constexpr (kBytes == 16)           // bypasses the first-level cache: L2 serves blocks that share keys
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(read) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes), "r"(read)
                     : "memory");
}

KVJIT_INLINE void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int kPending>
KVJIT_INLINE void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

KVJIT_INLINE u32 atomic_add(unsigned* at, unsigned v) {
    u32 before;
    asm volatile("atom.relaxed.gpu.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(at), "r"(v) : "memory");
    return before;
}

KVJIT_INLINE void thread_fence() {
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

// ---- Matrices ------------------------------------------------------------------------------------------------------

template <class T>
KVJIT_INLINE void mma_16x8x16(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]);
template <>
KVJIT_INLINE void mma_16x8x16<f16_t>(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <>
KVJIT_INLINE void mma_16x8x16<bf16_t>(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

KVJIT_INLINE void load_matrices(u32 (&to)[4], const void* shared_row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(shared_row))
                 : "memory");
}

KVJIT_INLINE void load_matrices_transposed(u32 (&to)[4], const void* shared_row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(shared_row))
                 : "memory");
}

// ---- float16 -------------------------------------------------------------------------------------------------------

KVJIT_INLINE float half_to_float(u16 v) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(v));
    return result;
}

KVJIT_INLINE u16 float_to_half(float v) {
    u16 result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(v));
    return result;
}

KVJIT_INLINE u32 pack_halves(float low, float high) {
    u32 result;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
    return result;
}

KVJIT_INLINE u32 half2_sub(u32 a, u32 b) {
    u32 result;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    return result;
}
KVJIT_INLINE u32 half2_mul(u32 a, u32 b) {
    u32 result;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    return result;
}
KVJIT_INLINE u32 half2_negate(u32 v) {
    u32 result;
    asm("neg.f16x2 %0, %1;" : "=r"(result) : "r"(v));
    return result;
}
KVJIT_INLINE u32 half2_fma(u32 a, u32 b, u32 c) {
    u32 result;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}

// ---- bfloat16 ------------------------------------------------------------------------------------------------------

KVJIT_INLINE float bfloat16_to_float(u16 v) {
    return __builtin_bit_cast(float, static_cast<u32>(v) << 16);
}

KVJIT_INLINE u16 float_to_bfloat16(float v) {
    u16 result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(v));
    return result;
}

KVJIT_INLINE u32 pack_bfloat16s(float low, float high) {
    u32 result;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
    return result;
}

KVJIT_INLINE u32 bfloat162_negate(u32 v) {
    u32 result;
    asm("neg.bf16x2 %0, %1;" : "=r"(result) : "r"(v));
    return result;
}
KVJIT_INLINE u32 bfloat162_fma(u32 a, u32 b, u32 c) {
    u32 result;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}

// ---- Bits ----------------------------------------------------------------------------------------------------------

KVJIT_INLINE u32 permute_bytes(u32 a, u32 b, u32 selector) {
    return __byte_perm(a, b, selector);
}
KVJIT_INLINE u32 and_xor(u32 v, u32 mask, u32 flip) {
    u32 result;
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(v), "r"(mask), "r"(flip));
    return result;
}
KVJIT_INLINE i32 count_ones(u32 v) {
    return __popc(v);
}

// ---- float32 -------------------------------------------------------------------------------------------------------

KVJIT_INLINE float fma(float a, float b, float c) {
    return __fmaf_rn(a, b, c);
}
KVJIT_INLINE float reciprocal(float v) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
    return result;
}
KVJIT_INLINE float exp2(float v) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
    return result;
}
KVJIT_INLINE float log2(float v) {
    float result;
    asm("lg2.approx.f32 %0, %1;" : "=f"(result) : "f"(v));
    return result;
}
KVJIT_INLINE float max_nan(float a, float b) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

}  // namespace kvjit

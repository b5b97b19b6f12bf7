// The primitives of contract.h on the CPU, where each thread of a block is a fiber of the emulator. Collectives take
// the line that calls them as a last, defaulted argument, which errors name.
#pragma once

#include "common/types.h"
#include "cuda/machine/emulated/calls.h"
#include "cuda/machine/emulated/half.h"
#include "cuda/machine/emulated/math.h"
#include "cuda/machine/emulated/thread.h"

#define KVJIT_ENTRY(threads, blocks) extern "C" void
#define KVJIT_PARAM(type) const type&

/// Inlined without debug lines, so that a primitive's memory accesses are reported at the line that calls it.
#define KVJIT_PRIMITIVE [[gnu::always_inline, gnu::nodebug]] inline

namespace kvjit {

// ---- Threads --------------------------------------------------------------------------------------------------------

KVJIT_PRIMITIVE i32 thread_index() {
    return emulation::own_index();
}
KVJIT_PRIMITIVE i64 block_x() {
    return emulation::own_block_x();
}
KVJIT_PRIMITIVE i64 block_y() {
    return emulation::own_block_y();
}
KVJIT_PRIMITIVE i32 opaque(i32 v) {
    asm volatile("" : "+r"(v));
    return v;
}

KVJIT_PRIMITIVE void barrier(emulation::Site site = emulation::Site::here()) {
    emulation::meet(emulation::Collective::kBarrier, site);
}
KVJIT_PRIMITIVE void warp_barrier(emulation::Site site = emulation::Site::here()) {
    emulation::meet(emulation::Collective::kWarpBarrier, site);
}

template <class T>
KVJIT_PRIMITIVE T shuffle(T v, i32 source_lane, emulation::Site site = emulation::Site::here()) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    if constexpr (sizeof(T) == 8) {
        return __builtin_bit_cast(T, emulation::shuffle_bits(__builtin_bit_cast(u64, v), source_lane, site));
    } else {
        const u64 bits = emulation::shuffle_bits(__builtin_bit_cast(u32, v), source_lane, site);
        return __builtin_bit_cast(T, static_cast<u32>(bits));
    }
}
template <class T>
KVJIT_PRIMITIVE T shuffle_xor(T v, i32 mask, emulation::Site site = emulation::Site::here()) {
    return shuffle(v, thread_index() ^ mask, site);
}

KVJIT_PRIMITIVE u32 ballot(bool yes, emulation::Site site = emulation::Site::here()) {
    return emulation::vote(yes, site);
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

template <class T>
KVJIT_PRIMITIVE T& shared_memory(emulation::Site site = emulation::Site::here()) {
    static_assert(alignof(T) <= emulation::kSharedAlignment);
    return *static_cast<T*>(emulation::own_shared_memory(sizeof(T), site));
}

template <class T>
KVJIT_INLINE T& keep_shared(T& object) {
    return object;
}

template <int kBytes>
KVJIT_PRIMITIVE void copy_async(void* shared, const void* global, bool valid) {
    static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
    emulation::start_copy(shared, global, kBytes, valid);
}
KVJIT_PRIMITIVE void commit_copies() {
    emulation::commit();
}
template <int kPending>
KVJIT_PRIMITIVE void wait_copies() {
    emulation::wait(kPending);
}

template <int kCount>
KVJIT_PRIMITIVE void load_words(u32 (&to)[kCount], const void* from) {
    const auto words = emulation::load_aligned<kCount>(from);
    for (i32 i = 0; i < kCount; ++i) to[i] = words[i];
}
template <int kCount>
KVJIT_PRIMITIVE void store_words(void* to, const u32 (&from)[kCount]) {
    emulation::Lanes<u32, kCount> words;
    for (i32 i = 0; i < kCount; ++i) words[i] = from[i];
    emulation::store_aligned<kCount>(to, words);
}

KVJIT_PRIMITIVE void load4(u32 (&to)[1], const void* from) {
    load_words(to, from);
}
KVJIT_PRIMITIVE void load8(u32 (&to)[2], const void* from) {
    load_words(to, from);
}
KVJIT_PRIMITIVE void load16(u32 (&to)[4], const void* from) {
    load_words(to, from);
}
KVJIT_PRIMITIVE void store4(void* to, const u32 (&from)[1]) {
    store_words(to, from);
}
KVJIT_PRIMITIVE void store8(void* to, const u32 (&from)[2]) {
    store_words(to, from);
}
KVJIT_PRIMITIVE void store16(void* to, const u32 (&from)[4]) {
    store_words(to, from);
}

KVJIT_PRIMITIVE u32 atomic_add(unsigned* p, unsigned v) {
    return emulation::add(p, v);
}
KVJIT_PRIMITIVE void thread_fence() {
    emulation::fence();
}

// ---- Matrices -------------------------------------------------------------------------------------------------------

template <class T>
KVJIT_PRIMITIVE void mma_16x8x16(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2],
                                 emulation::Site site = emulation::Site::here()) {
    const auto sum = emulation::multiply<T>(emulation::Floats<4>{c[0], c[1], c[2], c[3]},
                                            emulation::Lanes<u32, 4>{a[0], a[1], a[2], a[3]},
                                            emulation::Lanes<u32, 2>{b[0], b[1]}, site);
    for (i32 i = 0; i < 4; ++i) c[i] = sum[i];
}

KVJIT_PRIMITIVE void load_matrices(u32 (&r)[4], const void* shared_row,
                                   emulation::Site site = emulation::Site::here()) {
    const auto registers = emulation::matrices(shared_row, false, site);
    for (i32 i = 0; i < 4; ++i) r[i] = registers[i];
}
KVJIT_PRIMITIVE void load_matrices_transposed(u32 (&r)[4], const void* shared_row,
                                              emulation::Site site = emulation::Site::here()) {
    const auto registers = emulation::matrices(shared_row, true, site);
    for (i32 i = 0; i < 4; ++i) r[i] = registers[i];
}

// ---- float16 --------------------------------------------------------------------------------------------------------

KVJIT_PRIMITIVE float half_to_float(u16 v) {
    return emulation::widen<1>(v).x;
}
KVJIT_PRIMITIVE u16 float_to_half(float v) {
    return emulation::narrow<1>(v).x;
}
KVJIT_PRIMITIVE u32 pack_halves(float low, float high) {
    return emulation::narrow_pair({low, high});
}

// Differences and products of two halves may be rounded twice: float has more than twice a half's digits.
KVJIT_PRIMITIVE u32 half2_sub(u32 a, u32 b) {
    return emulation::narrow_pair(emulation::widen_pair(a) - emulation::widen_pair(b));
}
KVJIT_PRIMITIVE u32 half2_mul(u32 a, u32 b) {
    return emulation::narrow_pair(emulation::widen_pair(a) * emulation::widen_pair(b));
}
KVJIT_PRIMITIVE u32 half2_negate(u32 v) {
    return v ^ 0x80008000;
}
KVJIT_PRIMITIVE u32 half2_fma(u32 a, u32 b, u32 c) {
    const auto x = emulation::widen_pair(a), y = emulation::widen_pair(b), z = emulation::widen_pair(c);
    return pack_halves(emulation::to_float_odd(emulation::sum_to_odd(x[0], y[0], z[0])),
                       emulation::to_float_odd(emulation::sum_to_odd(x[1], y[1], z[1])));
}

// ---- bfloat16 -------------------------------------------------------------------------------------------------------

KVJIT_PRIMITIVE float bfloat16_to_float(u16 v) {
    return emulation::widen_bfloat16(v);
}
KVJIT_PRIMITIVE u16 float_to_bfloat16(float v) {
    return emulation::narrow_bfloat16(v);
}
KVJIT_PRIMITIVE u32 pack_bfloat16s(float low, float high) {
    return float_to_bfloat16(low) | static_cast<u32>(float_to_bfloat16(high)) << 16;
}
KVJIT_PRIMITIVE u32 bfloat162_negate(u32 v) {
    return v ^ 0x80008000;
}
KVJIT_PRIMITIVE u32 bfloat162_fma(u32 a, u32 b, u32 c) {
    const auto x = emulation::widen_pair<bf16_t>(a), y = emulation::widen_pair<bf16_t>(b),
               z = emulation::widen_pair<bf16_t>(c);
    return pack_bfloat16s(emulation::to_float_odd(emulation::sum_to_odd(x[0], y[0], z[0])),
                          emulation::to_float_odd(emulation::sum_to_odd(x[1], y[1], z[1])));
}

// ---- Bits -----------------------------------------------------------------------------------------------------------

KVJIT_PRIMITIVE u32 permute_bytes(u32 a, u32 b, u32 selector) {
    return emulation::select_bytes(a, b, selector);
}
KVJIT_PRIMITIVE u32 and_xor(u32 v, u32 mask, u32 flip) {
    return (v & mask) ^ flip;
}
KVJIT_PRIMITIVE i32 count_ones(u32 v) {
    return __builtin_popcount(v);
}

// ---- float32 --------------------------------------------------------------------------------------------------------

KVJIT_PRIMITIVE float fma(float a, float b, float c) {
#ifdef __FMA__
    return __builtin_fmaf(a, b, c);
#else
    return static_cast<float>(emulation::sum_to_odd(a, b, c));
#endif
}
KVJIT_PRIMITIVE float reciprocal(float v) {
    return 1.0f / v;
}
KVJIT_PRIMITIVE float exp2(float v) {
    return emulation::power_of_two(v);
}
KVJIT_PRIMITIVE float log2(float v) {
    return emulation::logarithm_of_two(v);
}
KVJIT_PRIMITIVE float max_nan(float a, float b) {
    return emulation::larger_of(a, b);
}

}  // namespace kvjit

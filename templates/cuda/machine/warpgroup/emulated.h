// cuda/machine/warpgroup/contract.h on the CPU: each warp multiplies its own rows, at once, as cuda/machine/emulated.h
// has it for warps. That products run in the background on GPUs is left to the interpreter of PTX
// (docs/gpu_testing.md).
#pragma once

#include "cuda/machine/emulated.h"
#include "cuda/machine/warpgroup/swizzle.h"

namespace kvjit {

KVJIT_PRIMITIVE void begin_products() {}
KVJIT_PRIMITIVE void end_products() {}
template <int kPending>
KVJIT_PRIMITIVE void wait_products() {}
template <int kTiles>
KVJIT_PRIMITIVE void pin(float (&)[kTiles][4]) {}
KVJIT_PRIMITIVE void pin(u32 (&)[4]) {}
KVJIT_PRIMITIVE void publish_to_products() {}
/// All calls count as one place, that of the barrier here.
template <int kThreads>
KVJIT_PRIMITIVE void change_over() {
    barrier();
}

struct SharedMatrix {
    const char* start;
    i32 stripe;
};
KVJIT_PRIMITIVE SharedMatrix shared_matrix(const char* start, i32 stripe) {
    return {start, stripe};
}
KVJIT_PRIMITIVE SharedMatrix operator+(SharedMatrix matrix, i32 bytes) {
    return {matrix.start + bytes, matrix.stripe};
}

/// GPUs swizzle addresses, not rows: bits 7 to 9 of an address are those of the row, if stripes are aligned.
KVJIT_PRIMITIVE const char* swizzled_address(const char* at) {
    const u64 address = reinterpret_cast<u64>(at);
    return at - address % kStripeBytes + (address % kStripeBytes ^ address / kStripeBytes % 8 * 16);
}

template <class T, bool kAdd, int kTiles>
KVJIT_PRIMITIVE void multiply_transposed(float (&c)[kTiles][4], SharedMatrix a, SharedMatrix b,
                                         emulation::Site site = emulation::Site::here()) {
    const i32 lane = thread_index() % 32, row = thread_index() / 32 % 4 * 16 + lane % 16;
    const i32 column = lane / 16 * 16, key = lane / 16 * 8 + lane % 8, key_column = lane / 8 % 2 * 16;
    u32 left[4];
    load_matrices(left, swizzled_address(a.start + row * kStripeBytes + column), site);
    for (int n = 0; n < kTiles; n += 2) {
        u32 right[4];
        load_matrices(right, swizzled_address(b.start + (8 * n + key) * kStripeBytes + key_column), site);
        for (int i = 0; i < 2; ++i) {
            for (int j = 0; j < 4; ++j) c[n + i][j] = kAdd ? c[n + i][j] : 0.0f;
            mma_16x8x16<T>(c[n + i], left, {right[2 * i], right[2 * i + 1]}, site);
        }
    }
}

template <class T, int kTiles>
KVJIT_PRIMITIVE void multiply(float (&c)[kTiles][4], const u32 (&a)[4], SharedMatrix b,
                              emulation::Site site = emulation::Site::here()) {
    const i32 lane = thread_index() % 32, row = lane % 16;
    for (int n = 0; n < kTiles; n += 2) {
        const i32 tile = n + lane / 16;
        u32 right[4];
        load_matrices_transposed(
            right, swizzled_address(b.start + tile / 8 * b.stripe + row * kStripeBytes + tile % 8 * 16), site);
        for (int i = 0; i < 2; ++i) mma_16x8x16<T>(c[n + i], a, {right[2 * i], right[2 * i + 1]}, site);
    }
}

}  // namespace kvjit

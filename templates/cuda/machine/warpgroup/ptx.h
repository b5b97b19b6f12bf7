// cuda/machine/warpgroup/contract.h for GPUs: inline PTX ("Asynchronous Warpgroup Level Matrix Instructions").
#pragma once

#include "cuda/machine/contract.h"
#include "cuda/machine/warpgroup/swizzle.h"

namespace kvjit {

KVJIT_INLINE void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
KVJIT_INLINE void end_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
KVJIT_INLINE void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
template <int kTiles>
KVJIT_INLINE void pin(float (&c)[kTiles][4]) {
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(c[n][i])::"memory");
    }
}
KVJIT_INLINE void pin(u32 (&a)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+r"(a[i])::"memory");
}
KVJIT_INLINE void publish_to_products() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Not bar.sync, whatever its number and count: compute-sanitizer's synccheck wants all of a block's warps to be at the
/// same one.
template <int kThreads>
KVJIT_INLINE void change_over() {
    asm volatile("barrier.sync 1, %0;" ::"n"(kThreads) : "memory");
}

/// The lower half of a descriptor ("Matrix Descriptor Format"): the start and the leading dimension's offset, which is
/// that of stripes, in units of 16 bytes. Shared memory has 18 bits of address.
struct SharedMatrix {
    u32 low;

    /// With 1024 bytes from 8 rows to the next 8, and 1 for swizzling of 128 bytes.
    KVJIT_INLINE u64 descriptor() const {
        constexpr u64 kHigh = 8 * kStripeBytes / 16 | 1u << 30;
        return kHigh << 32 | low;
    }
};

KVJIT_INLINE SharedMatrix shared_matrix(const char* start, i32 stripe) {
    return {shared_address(start) / 16 | static_cast<u32>(stripe) / 16 << 16};
}
KVJIT_INLINE SharedMatrix operator+(SharedMatrix matrix, i32 bytes) {
    return {matrix.low + static_cast<u32>(bytes) / 16};
}

// ---- The instruction -----------------------------------------------------------------------------------------------

// Accumulators are operands 0 to 31 of 64 columns, 0 to 63 of 128.
#define KVJIT_32_OPERANDS                                                                                  \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
    "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define KVJIT_64_OPERANDS                                                                                  \
    KVJIT_32_OPERANDS                                                                                      \
    ", "                                                                                                   \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, " \
    "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

#define KVJIT_TILE(to, c, n) to(c[n][0]), to(c[n][1]), to(c[n][2]), to(c[n][3])
#define KVJIT_4_TILES(to, c, n) \
    KVJIT_TILE(to, c, n), KVJIT_TILE(to, c, n + 1), KVJIT_TILE(to, c, n + 2), KVJIT_TILE(to, c, n + 3)
#define KVJIT_8_TILES(to, c, n) KVJIT_4_TILES(to, c, n), KVJIT_4_TILES(to, c, n + 4)
#define KVJIT_16_TILES(to, c, n) KVJIT_8_TILES(to, c, n), KVJIT_8_TILES(to, c, n + 8)

/// inputs: the operands past the accumulators. adds: "0" where it doesn't read the accumulators. transposed: whether
/// the operands in shared memory are.
#define KVJIT_GROUP_PRODUCT(columns, type, accumulators, inputs, adds, transposed)                      \
    "{\n.reg .pred adds;\nsetp.ne.b32 adds, " adds                                                      \
    ", 0;\n"                                                                                            \
    "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" accumulators "}, " inputs \
    ", adds, 1, 1, " transposed ";\n}\n"

template <class T, int kTiles>
struct GroupProduct;

/// i0..i4: the operands past the accumulators.
#define KVJIT_GROUP_PRODUCTS(T, type, tiles, columns, accumulators, registers, i0, i1, i2, i3, i4)                  \
    template <>                                                                                                     \
    struct GroupProduct<T, tiles> {                                                                                 \
        KVJIT_INLINE static void begin_of_shared(float (&c)[tiles][4], u64 a, u64 b) {                              \
            asm volatile(KVJIT_GROUP_PRODUCT(columns, type, accumulators, i0 ", " i1, "0", "0, 0")                  \
                         : registers("=f", c, 0)                                                                    \
                         : "l"(a), "l"(b));                                                                         \
        }                                                                                                           \
        KVJIT_INLINE static void add_of_shared(float (&c)[tiles][4], u64 a, u64 b) {                                \
            asm volatile(KVJIT_GROUP_PRODUCT(columns, type, accumulators, i0 ", " i1, "1", "0, 0")                  \
                         : registers("+f", c, 0)                                                                    \
                         : "l"(a), "l"(b));                                                                         \
        }                                                                                                           \
        KVJIT_INLINE static void add_of_registers(float (&c)[tiles][4], const u32 (&a)[4], u64 b) {                 \
            asm volatile(                                                                                           \
                KVJIT_GROUP_PRODUCT(columns, type, accumulators, "{" i0 ", " i1 ", " i2 ", " i3 "}, " i4, "1", "1") \
                : registers("+f", c, 0)                                                                             \
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                              \
        }                                                                                                           \
    };

KVJIT_GROUP_PRODUCTS(f16_t, "f16", 8, "64", KVJIT_32_OPERANDS, KVJIT_8_TILES, "%32", "%33", "%34", "%35", "%36")
KVJIT_GROUP_PRODUCTS(f16_t, "f16", 16, "128", KVJIT_64_OPERANDS, KVJIT_16_TILES, "%64", "%65", "%66", "%67", "%68")
KVJIT_GROUP_PRODUCTS(bf16_t, "bf16", 8, "64", KVJIT_32_OPERANDS, KVJIT_8_TILES, "%32", "%33", "%34", "%35", "%36")
KVJIT_GROUP_PRODUCTS(bf16_t, "bf16", 16, "128", KVJIT_64_OPERANDS, KVJIT_16_TILES, "%64", "%65", "%66", "%67", "%68")

// ---- Products ------------------------------------------------------------------------------------------------------

template <class T, bool kAdd, int kTiles>
KVJIT_INLINE void multiply_transposed(float (&c)[kTiles][4], SharedMatrix a, SharedMatrix b) {
    if constexpr (kAdd)
        GroupProduct<T, kTiles>::add_of_shared(c, a.descriptor(), b.descriptor());
    else
        GroupProduct<T, kTiles>::begin_of_shared(c, a.descriptor(), b.descriptor());
}

template <class T, int kTiles>
KVJIT_INLINE void multiply(float (&c)[kTiles][4], const u32 (&a)[4], SharedMatrix b) {
    GroupProduct<T, kTiles>::add_of_registers(c, a, b.descriptor());
}

}  // namespace kvjit

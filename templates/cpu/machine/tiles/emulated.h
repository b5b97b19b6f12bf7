// cpu/machine/tiles/contract.h on any CPU that has FMA: slow, for tests. Tiles are memory.
#pragma once

#include "cpu/machine/simd.h"

namespace kvjit {

class TileRegisters {
public:
    TileRegisters() = default;
    TileRegisters(const TileRegisters&) = delete;
    TileRegisters& operator=(const TileRegisters&) = delete;

    template <int kTile>
    KVJIT_INLINE void zero() {
        zero(tiles_[kTile]);
    }
    template <int kTile>
    KVJIT_INLINE void load(const void* rows, i64 stride) {
        copy(tiles_[kTile], 64, static_cast<const char*>(rows), stride);
    }
    template <int kTile>
    KVJIT_INLINE void store(void* rows, i64 stride) {
        copy(static_cast<char*>(rows), stride, tiles_[kTile], 64);
    }
    template <int kSum, int kA, int kB>
    KVJIT_INLINE void multiply_bfloat16() {
        multiply(tiles_[kSum], tiles_[kA], tiles_[kB]);
    }

private:
    static_assert(kHasFma, "the sums of products are rounded once");
    using Tile = char[16 * 64];
    using Row = vf<16>;

    static void zero(Tile& tile) {
        for (int i = 0; i < 16; ++i) store_vector(tile + 64 * i, Row(0.0f));
    }

    static void copy(char* to, i64 to_stride, const char* from, i64 from_stride) {
#pragma clang loop unroll(disable)
        for (i64 i = 0; i < 16; ++i) store_vector(to + i * to_stride, load_raw<u8, 64>(from + i * from_stride));
    }

    /// Subnormal numbers become 0 of their sign.
    static Row flush(Row v) {
        const vi<16> bits = bits_of<16>(v);
        return (bits & 0x7f800000) == 0 ? from_bits<16>(bits & (-0x7fffffff - 1)) : v;
    }
    /// The even or the odd elements of 16 pairs.
    static Row even(vec<u32, 16> pairs) { return flush(__builtin_bit_cast(Row, pairs << 16)); }
    static Row odd(vec<u32, 16> pairs) { return flush(__builtin_bit_cast(Row, pairs & 0xffff0000)); }

    static void multiply(Tile& sum, const Tile& a, const Tile& b) {
#pragma clang loop unroll(disable)
        for (int m = 0; m < 16; ++m) {
            Row evens(0.0f), odds(0.0f);
#pragma clang loop unroll(disable)
            for (int k = 0; k < 16; ++k) {
                const vec<u32, 16> left(load_raw<u32, 1>(a + 64 * m + 4 * k)[0]);
                const vec<u32, 16> right = load_raw<u32, 16>(b + 64 * k);
                evens = flush(fma<16>(even(left), even(right), evens));
                odds = flush(fma<16>(odd(left), odd(right), odds));
            }
            const Row products = flush(evens + odds);
            store_vector(sum + 64 * m, flush(flush(load_raw<float, 16>(sum + 64 * m)) + products));
        }
    }

    alignas(64) Tile tiles_[8];
};

}  // namespace kvjit

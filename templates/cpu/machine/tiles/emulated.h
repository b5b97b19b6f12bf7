// cpu/machine/tiles/contract.h on any CPU that has FMA: slow, for tests. Tiles are memory.
#pragma once

#include "cpu/machine/simd.h"
#include "cpu/machine/tiles/shapes.h"

namespace kvjit {

class TileRegisters {
public:
    explicit TileRegisters(const TileShapes& shapes = {}) : shapes_(shapes) {}
    TileRegisters(const TileRegisters&) = delete;
    TileRegisters& operator=(const TileRegisters&) = delete;

    template <int kTile>
    KVJIT_INLINE void zero() {
        zero(tiles_[kTile]);
    }
    template <int kTile>
    KVJIT_INLINE void load(const void* rows, i64 stride) {
        copy<kTile>(tiles_[kTile], 64, static_cast<const char*>(rows), stride);
    }
    template <int kTile>
    KVJIT_INLINE void store(void* rows, i64 stride) {
        copy<kTile>(static_cast<char*>(rows), stride, tiles_[kTile], 64);
    }
    template <int kSum, int kA, int kB>
    KVJIT_INLINE void multiply_bfloat16() {
        multiply(tiles_[kSum], tiles_[kA], tiles_[kB]);
    }
    KVJIT_INLINE void stay_awake() {}
    template <int kSum, int kA, int kB>
    KVJIT_INLINE void multiply_signed_bytes() {
        multiply_bytes<i8>(kSum, kA, kB);
    }
    template <int kSum, int kA, int kB>
    KVJIT_INLINE void multiply_unsigned_bytes() {
        multiply_bytes<u8>(kSum, kA, kB);
    }

private:
    static_assert(kHasFma, "the sums of products are rounded once");
    using Tile = char[16 * 64];
    using Row = vf<16>;

    static void zero(Tile& tile) {
        for (int i = 0; i < 16; ++i) store_vector(tile + 64 * i, Row(0.0f));
    }

    template <int kTile>
    void copy(char* to, i64 to_stride, const char* from, i64 from_stride) {
#pragma clang loop unroll(disable)
        for (i64 i = 0; i < shapes_.rows[kTile]; ++i, to += to_stride, from += from_stride) {
            if (shapes_.row_bytes[kTile] == 64) {
                store_vector(to, load_raw<u8, 64>(from));
            } else {
#pragma clang loop vectorize(disable) unroll(disable)
                for (i64 byte = 0; byte < shapes_.row_bytes[kTile]; ++byte) to[byte] = from[byte];
            }
        }
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

    /// Byte: a's, signed or not.
    template <class Byte>
    void multiply_bytes(int sum, int a, int b) {
        const int rows = shapes_.rows[sum], words = shapes_.rows[b], columns = shapes_.row_bytes[sum] / 4;
        if (rows == 0 || words == 0 || columns == 0 || shapes_.rows[a] != rows || shapes_.row_bytes[a] != 4 * words ||
            shapes_.row_bytes[b] != 4 * columns)
            __builtin_trap();
#pragma clang loop unroll(disable)
        for (int m = 0; m < rows; ++m) {
            vec<u32, 16> sums = load_raw<u32, 16>(tiles_[sum] + 64 * m);
#pragma clang loop unroll(disable)
            for (int k = 0; k < words; ++k) {
                const vi<16> right = load_raw<i32, 16>(tiles_[b] + 64 * k);
#pragma clang loop unroll(full)
                for (int byte = 0; byte < 4; ++byte) {
                    const i32 left = static_cast<Byte>(tiles_[a][64 * m + 4 * k + byte]);
                    sums += __builtin_bit_cast(vec<u32, 16>, vi<16>(left) * (right << (24 - 8 * byte) >> 24));
                }
            }
            store_vector(tiles_[sum] + 64 * m, sums);
        }
    }

    TileShapes shapes_;
    alignas(64) Tile tiles_[8];
};

}  // namespace kvjit

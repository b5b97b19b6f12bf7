// int4 codes as bfloat16.
#pragma once

#include "cpu/machine/pairs.h"

namespace kvjit {

struct alignas(64) NibbleTable {
    u16 bits[32];
};
/// For an index of 5 bits, of which the lower 4 are a code: bfloat16's bits of that code.
constexpr NibbleTable nibble_table() {
    NibbleTable table{};
    for (int i = 0; i < 32; ++i)
        table.bits[i] = static_cast<u16>(__builtin_bit_cast(u32, static_cast<float>((i & 7) - (i & 8))) >> 16);
    return table;
}
inline constexpr NibbleTable kNibbleTable = nibble_table();

/// The code in the low 4 bits of each half of a lane, as bfloat16 in that half.
template <int N>
KVJIT_INLINE vec<u32, N> nibbles_to_bfloat16(vec<u32, N> nibbles) {
#ifdef __AVX512BW__
    if constexpr (N == 16) {
        using Words = vec<i16, 32>;
        const Words table = load_raw<i16, 32>(kNibbleTable.bits);
        return __builtin_bit_cast(vec<u32, N>, __builtin_ia32_permvarhi512(table, __builtin_bit_cast(Words, nibbles)));
    }
#endif
    auto words = __builtin_bit_cast(vec<u16, 2 * N>, nibbles);
#pragma clang loop unroll(disable)
    for (int i = 0; i < 2 * N; ++i) words[i] = kNibbleTable.bits[words[i] & 15];
    return __builtin_bit_cast(vec<u32, N>, words);
}

}  // namespace kvjit

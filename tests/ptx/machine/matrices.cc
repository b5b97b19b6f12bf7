#include "ptx/machine/matrices.h"

#include "ptx/machine/half.h"
#include "ptx/machine/sums.h"

namespace kvjit::ptx {
namespace {

template <class Format>
void multiply(Warp& warp, const Instruction& in) {
    warp.check_whole();
    Multiplicand<kM> a;
    Multiplicand<kN> b;
    float c[kM][kN];
    const auto half = [&](int source, int lane, int upper) {
        const u32 bits = warp.lanes<u32>(in.source(source))[lane];
        return static_cast<u16>(upper == 1 ? bits >> 16 : bits);
    };
    for (int l = 0; l < kLanes; ++l) {
        const int group = l / 4, pair = l % 4 * 2;
        for (int i = 0; i < 8; ++i) {  // a register holds elements i and i + 1
            const int row = group + (i / 2 % 2 == 1 ? 8 : 0), k = pair + i % 2 + (i >= 4 ? 8 : 0);
            a.set<Format>(k, row, half(i / 2, l, i % 2));
        }
        for (int i = 0; i < 4; ++i) {
            const int k = pair + i % 2 + (i >= 2 ? 8 : 0);
            b.set<Format>(k, group, half(4 + i / 2, l, i % 2));
            sum_of_lane(c, l, i) = warp.lanes<float>(in.source(6 + i))[l];
        }
    }
    for (int row = 0; row < kM; ++row) add_products(c[row], a, row, b, warp.options().sums);
    for (int i = 0; i < 4; ++i) {
        float results[kLanes];
        for (int l = 0; l < kLanes; ++l) results[l] = sum_of_lane(c, l, i);
        warp.put(in.destination(i), results);
    }
}

/// Lane l has the address of row l % 8 of matrix l / 8.
void load_four_matrices(Warp& warp, const Instruction& in, bool is_transposed) {
    warp.check_whole();
    u16 elements[4][8][8];
    const u32* base = warp.lanes<u32>(in.source(0));
    for (int l = 0; l < kLanes; ++l) {
        const u64 address = base[l] + static_cast<u64>(i64{in.offsets[0]});
        if (address % 16 != 0) throw Fault(FaultKind::kMisaligned, "a row's address is no multiple of 16", l);
        warp.block().shared.load(address, elements[l / 8][l % 8], 16, warp.accessor(l));
    }
    for (int matrix = 0; matrix < 4; ++matrix) {
        u32 results[kLanes];
        for (int l = 0; l < kLanes; ++l) {
            const int along = l / 4, pair = l % 4 * 2;
            const u16(&from)[8][8] = elements[matrix];
            const u32 low = is_transposed ? from[pair][along] : from[along][pair];
            const u32 high = is_transposed ? from[pair + 1][along] : from[along][pair + 1];
            results[l] = low | high << 16;
        }
        warp.put(in.destination(matrix), results);
    }
}

}  // namespace

void load_matrices(Warp& warp, const Instruction& in) {
    load_four_matrices(warp, in, false);
}
void load_matrices_transposed(Warp& warp, const Instruction& in) {
    load_four_matrices(warp, in, true);
}

void multiply_float16(Warp& warp, const Instruction& in) {
    multiply<Float16>(warp, in);
}
void multiply_bfloat16(Warp& warp, const Instruction& in) {
    multiply<BFloat16>(warp, in);
}

float sum_of_products(const u16 (&a)[16], const u16 (&b)[16], float c, Sums sums) {
    Multiplicand<kM> of_a;
    Multiplicand<kN> of_b;
    float row[kN] = {c};
    for (int k = 0; k < kK; ++k) {
        for (int i = 0; i < kM; ++i) of_a.set<Float16>(k, i, i == 0 ? a[k] : u16{0});
        for (int j = 0; j < kN; ++j) of_b.set<Float16>(k, j, j == 0 ? b[k] : u16{0});
    }
    add_products(row, of_a, 0, of_b, sums);
    return row[0];
}

}  // namespace kvjit::ptx

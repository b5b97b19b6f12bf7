// The tensor core's product on the CPU. Registers hold elements as in the PTX ISA ("Matrix Fragments for mma.m16n8k16
// with floating point types"): lane = 4 * row + column pair.
#pragma once

#include "common/types.h"
#include "cuda/machine/emulated/half.h"

// One lane does the work for all, on its own stack: these are no accesses of the kernel's.
#pragma clang attribute push(__attribute__((disable_sanitizer_instrumentation)), apply_to = function)

namespace kvjit::emulation {

/// One lane's part of c += a * b.
struct MmaLane {
    Floats<4> c;      // (row, 2p), (row, 2p + 1), (row + 8, 2p), (row + 8, 2p + 1)
    Lanes<u32, 4> a;  // pairs of T: (row, 2p), (row + 8, 2p), (row, 2p + 8), (row + 8, 2p + 8) and their right
                      // neighbours
    Lanes<u32, 2> b;  // pairs of T: (2p, row), (2p + 8, row) and those below
};

struct MmaOperands {
    float a[16][16];
    Floats<8> b[16];  // by rows
    Floats<8> c[16];
};

template <class T>
KVJIT_INLINE void gather(MmaOperands& m, const MmaLane& lane, i32 row, i32 pair) {
    for (i32 i = 0; i < 4; ++i) {
        const Floats<2> values = widen_pair<T>(lane.a[i]);
        for (i32 j = 0; j < 2; ++j) m.a[row + 8 * (i % 2)][2 * pair + 8 * (i / 2) + j] = values[j];
        m.c[row + 8 * (i / 2)][2 * pair + i % 2] = lane.c[i];
    }
    for (i32 i = 0; i < 2; ++i) {
        const Floats<2> values = widen_pair<T>(lane.b[i]);
        for (i32 j = 0; j < 2; ++j) m.b[2 * pair + 8 * i + j][row] = values[j];
    }
}

/// arguments[l]: lane l's MmaLane, of pairs of T. Sums in float32, k ascending.
template <class T>
void multiply_matrices(void* const* arguments) {
    MmaOperands m;
    for (i32 l = 0; l < 32; ++l) gather<T>(m, *static_cast<const MmaLane*>(arguments[l]), l / 4, l % 4);
    for (i32 row = 0; row < 16; ++row) {
        for (i32 k = 0; k < 16; ++k) m.c[row] += m.a[row][k] * m.b[k];
    }
    for (i32 l = 0; l < 32; ++l) {
        auto& c = static_cast<MmaLane*>(arguments[l])->c;
        for (i32 i = 0; i < 4; ++i) c[i] = m.c[l / 4 + 8 * (i / 2)][2 * (l % 4) + i % 2];
    }
}

}  // namespace kvjit::emulation

#pragma clang attribute pop

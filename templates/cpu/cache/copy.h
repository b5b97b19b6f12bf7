// Copies of contiguous bytes, and of bytes in a nest of axes.
#pragma once

#include "cpu/machine/simd.h"

namespace kvjit {

using Bytes = vec<u8, kVectorBytes>;

KVJIT_INLINE void copy_vector(char* to, const char* from) {
    store_raw<u8, kVectorBytes>(to, load_raw<u8, kVectorBytes>(from));
}

/// Copies fewer bytes than a vector has.
KVJIT_INLINE void copy_few(char* to, const char* from, i64 bytes) {
    i64 i = 0;
    for (; i + 8 <= bytes; i += 8) store_raw<u8, 8>(to + i, load_raw<u8, 8>(from + i));
    for (; i < bytes; ++i) to[i] = from[i];
}

/// Copies bytes i..bytes-1. `bytes` is a vector's at least: the last vector may overlap the one before it.
KVJIT_INLINE void copy_ordinary(char* to, const char* from, i64 bytes, i64 i = 0) {
    for (; i + kVectorBytes <= bytes; i += kVectorBytes) copy_vector(to + i, from + i);
    if (i < bytes) copy_vector(to + bytes - kVectorBytes, from + bytes - kVectorBytes);
}

/// Copies with stores that bypass the processor's caches, so that no line is read before it is overwritten.
KVJIT_INLINE void copy_streaming(char* to, const char* from, i64 bytes) {
    constexpr i64 kStep = 4 * kVectorBytes;
    copy_vector(to, from);
    i64 i = kVectorBytes - static_cast<i64>(reinterpret_cast<u64>(to) % kVectorBytes);
    for (; i + kStep <= bytes; i += kStep) {
        Bytes line[4];
#pragma clang loop unroll(full)
        for (int k = 0; k < 4; ++k) line[k] = load_raw<u8, kVectorBytes>(from + i + k * kVectorBytes);
#pragma clang loop unroll(full)
        for (int k = 0; k < 4; ++k)
            __builtin_nontemporal_store(line[k], reinterpret_cast<Bytes*>(to + i + k * kVectorBytes));
    }
    copy_ordinary(to, from, bytes, i);
}

KVJIT_INLINE void copy_bytes(char* to, const char* from, i64 bytes, bool streams) {
    if (bytes < kVectorBytes)
        copy_few(to, from, bytes);
    else if (streams)
        copy_streaming(to, from, bytes);
    else
        copy_ordinary(to, from, bytes);
}

/// Orders streaming stores before any later store.
KVJIT_INLINE void finish_streaming() {
#ifdef __SSE2__
    __builtin_ia32_sfence();
#endif
}

/// `count` parts, and the bytes from one to the next in source and destination.
struct Axis {
    i64 count, from, to;
};

/// Runs of `bytes` bytes, contiguous on both sides, along axes, the innermost first.
struct Nest {
    i64 bytes;
    int depth;
    Axis axes[4];

    /// Adds the next axis outwards: merged into the last one where both sides continue it, else as a new one.
    KVJIT_INLINE void add(const Axis& axis) {
        if (axis.count == 1) return;
        const Axis inner = depth == 0 ? Axis{bytes, 1, 1} : axes[depth - 1];
        const bool goes_on = axis.from == inner.from * inner.count && axis.to == inner.to * inner.count;
        if (goes_on && depth == 0)
            bytes *= axis.count;
        else if (goes_on)
            axes[depth - 1].count *= axis.count;
        else
            axes[depth++] = axis;
    }
};

/// The nest of rows of `bytes` bytes along four axes, which it sorts by their strides in the destination.
KVJIT_INLINE Nest nest_of(i64 bytes, Axis (&axes)[4]) {
    for (int i = 1; i < 4; ++i) {
        for (int k = i; k > 0 && axes[k].to < axes[k - 1].to; --k) {
            const Axis larger = axes[k - 1];
            axes[k - 1] = axes[k];
            axes[k] = larger;
        }
    }
    Nest nest{bytes, 0, {}};
    for (const Axis& axis : axes) nest.add(axis);
    for (int i = nest.depth; i < 4; ++i) nest.axes[i] = {1, 0, 0};
    return nest;
}

KVJIT_NOINLINE void copy_nest(const Nest& nest, char* to, const char* from, bool streams) {
    const Axis &a = nest.axes[0], &b = nest.axes[1], &c = nest.axes[2], &d = nest.axes[3];
    for (i64 l = 0; l < d.count; ++l) {
        for (i64 k = 0; k < c.count; ++k) {
            for (i64 j = 0; j < b.count; ++j) {
                char* write = to + l * d.to + k * c.to + j * b.to;
                const char* read = from + l * d.from + k * c.from + j * b.from;
                for (i64 i = 0; i < a.count; ++i) copy_bytes(write + i * a.to, read + i * a.from, nest.bytes, streams);
            }
        }
    }
}

}  // namespace kvjit

// Rows of kHeadDim elements that lie in pieces of kNeighbours elements, `stride` bytes from one piece to the next.
// Lanes take kPiece elements at a time, as from contiguous rows, whatever kNeighbours is.
#pragma once

#include "common/quant.h"
#include "cuda/cache/elements.h"
#include "cuda/cache/row_codec.h"

namespace kvjit {

/// kPiece elements of T, unconverted: a lane's part of a row.
template <class T>
struct LanePiece {
    static constexpr int kBytes = static_cast<int>(bytes_of<T>(kPiece));
    static constexpr int kElementBytes = static_cast<int>(bytes_of<T>(1));
    static constexpr int kPerWord = 4 / kElementBytes;

    alignas(16) u32 words[kWordsOf<kBytes>];

    KVJIT_INLINE char* bytes() { return reinterpret_cast<char*>(words); }
    KVJIT_INLINE const char* bytes() const { return reinterpret_cast<const char*>(words); }
};

template <int kNeighbours, class T>
KVJIT_INLINE i64 element_offset(i64 stride, i32 d) {
    return d / kNeighbours * stride + bytes_of<T>(d % kNeighbours);
}

/// Elements d to d + kPiece - 1 of a row in pieces.
template <int kNeighbours, class T>
KVJIT_INLINE LanePiece<T> gather_elements(const char* row, i64 stride, i32 d) {
    using Lane = LanePiece<T>;
    Lane lane;
    if constexpr (kNeighbours % kPiece == 0) {
        load_bytes<Lane::kBytes>(lane.words, row + element_offset<kNeighbours, T>(stride, d));
    } else {
        for (u32& word : lane.words) word = 0;
#pragma unroll
        for (int i = 0; i < kPiece; ++i) {
            u32 bits[1];
            load_bytes<Lane::kElementBytes>(bits, row + element_offset<kNeighbours, T>(stride, d + i));
            lane.words[i / Lane::kPerWord] |= bits[0] << (i % Lane::kPerWord * 8 * Lane::kElementBytes);
        }
    }
    return lane;
}

template <int kNeighbours, class T>
KVJIT_INLINE void scatter_elements(char* row, i64 stride, i32 d, const LanePiece<T>& lane) {
    using Lane = LanePiece<T>;
    if constexpr (kNeighbours % kPiece == 0) {
        store_bytes<Lane::kBytes>(row + element_offset<kNeighbours, T>(stride, d), lane.words);
    } else {
#pragma unroll
        for (int i = 0; i < kPiece; ++i) {
            char* to = row + element_offset<kNeighbours, T>(stride, d + i);
            const u32 bits[1] = {lane.words[i / Lane::kPerWord] >> (i % Lane::kPerWord * 8 * Lane::kElementBytes)};
            if constexpr (Lane::kElementBytes == 1)
                *reinterpret_cast<u8*>(to) = static_cast<u8>(bits[0]);
            else
                store_bytes<Lane::kElementBytes>(to, bits);
        }
    }
}

/// The elements converted to another type, rounded once. load_elements and store_elements work on the lane's own
/// memory.
template <class To, class From>
KVJIT_INLINE LanePiece<To> convert(const LanePiece<From>& lane) {
    if constexpr (kSame<To, From>) {
        return lane;
    } else {
        float x[kPiece];
        load_elements<From>(x, lane.bytes(), 0);
        LanePiece<To> converted;
        store_elements(Of<To>{}, converted.bytes(), x);
        return converted;
    }
}

}  // namespace kvjit

// Rows of kHeadDim elements between tensors (T1) and the cache (T2 with scales T3).
#pragma once

#include "cpu/cache/elements.h"

namespace kvjit {

/// Copies kBytes bytes by the widest accesses that fit.
template <int kBytes, int kWidest = kVectorBytes>
KVJIT_INLINE void move_bytes(void* to, const void* from) {
    constexpr int kMain = kBytes - kBytes % kWidest;
    char* const write = static_cast<char*>(to);
    const char* const read = static_cast<const char*>(from);
#pragma clang loop unroll(full)
    for (int i = 0; i < kMain; i += kWidest) store_raw<u8, kWidest>(write + i, load_raw<u8, kWidest>(read + i));
    if constexpr (kMain < kBytes) move_bytes<kBytes - kMain, kWidest / 2>(write + kMain, read + kMain);
}

template <class T>
KVJIT_INLINE void move_row(T* to, const T* from) {
    move_bytes<static_cast<int>(bytes_of<T>(kHeadDim))>(to, from);
}

// ---- Quantising: several rows in three passes (maxima, scales, codes), so that the divisions for scales fill whole
// ---- vectors, and no row waits for its own -------------------------------------------------------------------------

/// Bits of an element without its sign. As integers they order as magnitudes do, with NaN above infinity: a maximum
/// keeps every NaN.
template <class T>
struct MagnitudeOf;
template <>
struct MagnitudeOf<float> {
    using Type = i32;
    static constexpr Type kMask = 0x7fffffff;
};
template <>
struct MagnitudeOf<f16_t> {
    using Type = i16;
    static constexpr Type kMask = 0x7fff;
};
template <>
struct MagnitudeOf<bf16_t> {
    using Type = i16;
    static constexpr Type kMask = 0x7fff;
};
template <>
struct MagnitudeOf<i8_t> {  // codes are moved, without a look at their magnitudes; but the function is there
    using Type = i8;
    static constexpr Type kMask = 0x7f;
};
template <class T>
using Magnitude = typename MagnitudeOf<T>::Type;

template <class T, int N>
KVJIT_INLINE vec<Magnitude<T>, N> magnitudes(const T* p) {
    return load_raw<Magnitude<T>, N>(p) & MagnitudeOf<T>::kMask;
}

inline constexpr int kRowsAtOnce = 8;
/// Groups of kRowsAtOnce rows, and room for a last vector that reaches past them, whose further lanes are ignored.
template <class Row>
inline constexpr int kScalesAtOnce = kRowsAtOnce * Row::kScales + kLanes;

/// Maxima and scales of the groups, row after row.
template <class Row>
struct ScaleRows {
    Magnitude<T1> maxima[kScalesAtOnce<Row>];
    float scales[kScalesAtOnce<Row>], inverses[kScalesAtOnce<Row>];
    typename Row::T3 rounded[kScalesAtOnce<Row>];
};

/// Lanes of a vector of magnitudes: as many as the target's vectors have, and 8 at least.
template <class T>
inline constexpr int kMagnitudeLanes = kVectorBytes == 16 && sizeof(T) == 4 ? 8 : kVectorBytes / sizeof(T);
/// Whether each group lies within one such vector.
template <class Row, class T>
inline constexpr bool kNarrowGroups =
    Row::kQuantGroup <= kMagnitudeLanes<T> && (Row::kQuantGroup & (Row::kQuantGroup - 1)) == 0;

/// Each lane becomes the largest of its group of kLanesOfGroup consecutive lanes.
template <class E, int N, int kLanesOfGroup, int kStep = 1>
KVJIT_INLINE vec<E, N> group_max(vec<E, N> v) {
    if constexpr (kStep == kLanesOfGroup)
        return v;
    else
        return group_max<E, N, kLanesOfGroup, 2 * kStep>(max_fast(v, exchange<E, N, kStep>(v)));
}

template <class Row, class From>
KVJIT_INLINE void narrow_group_maxima(Magnitude<From>* maxima, const From* row) {
    using E = Magnitude<From>;
    for_each_vector_of<kMagnitudeLanes<From>, kHeadDim>([&]<int N>(int d) {
        constexpr int kGroups = N / Row::kQuantGroup;
        const vec<E, N> largest = group_max<E, N, Row::kQuantGroup>(magnitudes<From, N>(row + d));
        if constexpr (kGroups == 1)
            maxima[d / Row::kQuantGroup] = largest[0];
        else
            store_raw<E, kGroups>(maxima + d / Row::kQuantGroup, every<E, N, kGroups>(largest));
    });
}

/// Maxima of groups that are wider than a vector, or no power of two.
template <class Row, class From>
KVJIT_INLINE void wide_group_maxima(Magnitude<From>* maxima, const From* row) {
    using E = Magnitude<From>;
    for (int group = 0; group < Row::kScales; ++group) {
        vec<E, kMagnitudeLanes<From>> whole(0);
        vec<E, 8> rest(0);
        for_each_vector_of<kMagnitudeLanes<From>, Row::kQuantGroup>([&]<int N>(int d) {
            const vec<E, N> next = magnitudes<From, N>(row + group * Row::kQuantGroup + d);
            if constexpr (N == kMagnitudeLanes<From>)
                whole = max_fast(whole, next);
            else
                rest = max_fast(rest, fold_max<E, N, 8>(next));
        });
        const vec<E, 2> two = fold_max<E, 8, 2>(max_fast(rest, fold_max<E, kMagnitudeLanes<From>, 8>(whole)));
        maxima[group] = max_fast(two[0], two[1]);
    }
}

/// Scales of the groups of `rows` rows from their maxima, with their inverses.
template <class Row>
KVJIT_INLINE void make_scales(ScaleRows<Row>& groups, int rows) {
    for (int g = 0; g < rows * Row::kScales; g += kLanes) {
        const vf<kLanes> scale = quant_scale<Row>(load<kLanes>(reinterpret_cast<const T1*>(groups.maxima + g)));
        store<kLanes>(groups.scales + g, scale);
        store<kLanes>(groups.inverses + g, 1.0f / scale);
        store<kLanes>(groups.rounded + g, scale);
    }
}

/// x / scale, rounded to nearest even; `inverse` is 1 / scale, rounded likewise. With FMA that takes no division: an
/// approximate quotient and its exact remainder give the right one (Markstein's theorem). Scales are neither so large
/// nor so small that an intermediate result would lose bits, unless the code is 0.
template <int N>
KVJIT_INLINE vf<N> quotient(vf<N> x, vf<N> scale, vf<N> inverse) {
    if constexpr (kHasFma) {
        const vf<N> near = x * inverse;
        return fma<N>(fma<N>(-near, scale, x), inverse, near);
    } else {
        return x / scale;
    }
}

/// The codes of N elements, one per byte: the low bytes of quant_code_magic's results. A code is 0 where the scale is
/// NaN; q is then a NaN, whose low bits are 0 already for a T1 of 16 bits where nothing clamps it.
template <int N, class Row>
KVJIT_INLINE vec<i8, N> codes_of(vf<N> q, vf<N> scale) {
    vf<N> magic = quant_code_magic<Row>(q);
    if constexpr (kClamps<Row> || sizeof(T1) != 2) magic = scale == scale ? magic : vf<N>(kRoundMagic);
    return __builtin_convertvector(bits_of<N>(magic), vec<i8, N>);
}

template <int N>
KVJIT_INLINE void store_codes(i8_t* to, vec<i8, N> codes) {
    store_raw<i8, N>(to, codes);
}

template <int N>
KVJIT_INLINE void store_codes(i4x2_t* to, vec<i8, N> codes) {
    const vec<u16, N / 2> pairs = __builtin_bit_cast(vec<u16, N / 2>, codes);
    store_raw<u8, N / 2>(to, __builtin_convertvector((pairs & 0x0f) | ((pairs >> 4) & 0xf0), vec<u8, N / 2>));
}

/// A row of T1, and the slot to quantise it to.
template <class Row>
struct RowToQuantise {
    typename Row::T2* codes;
    typename Row::T3* scales;
    const T1* from;
};

template <class Row>
KVJIT_INLINE void find_maxima(Magnitude<T1>* maxima, const T1* row) {
    if constexpr (kNarrowGroups<Row, T1>)
        narrow_group_maxima<Row>(maxima, row);
    else
        wide_group_maxima<Row>(maxima, row);
}

template <class Row>
KVJIT_INLINE void quantise_row(typename Row::T2* codes, const T1* from, const float* scales, const float* inverses) {
    for_each_vector<kHeadDim>([&]<int N>(int d) {
        const vf<N> scale = group_values<N, Row>(scales, d);
        const vf<N> q = quotient<N>(load<N>(from + d), scale, group_values<N, Row>(inverses, d));
        store_codes<N>(advance(codes, d), codes_of<N, Row>(q, scale));
    });
}

template <class Row>
KVJIT_NOINLINE void quantise_rows(const RowToQuantise<Row>* rows, int count) {
    ScaleRows<Row> groups;
    // Past the last group: any value whose scale is a number.
    store_raw<Magnitude<T1>, kLanes>(groups.maxima + count * Row::kScales, 0);
    for (int i = 0; i < count; ++i) find_maxima<Row>(groups.maxima + i * Row::kScales, rows[i].from);
    make_scales(groups, count);
    for (int i = 0; i < count; ++i) {
        const int first = i * Row::kScales;
        move_bytes<Row::kScales* static_cast<int>(sizeof(typename Row::T3))>(rows[i].scales, groups.rounded + first);
        quantise_row<Row>(rows[i].codes, rows[i].from, groups.scales + first, groups.inverses + first);
    }
}

// ---- Rows to and from the cache ------------------------------------------------------------------------------------

/// Writes rows of T1 to their slots, by finish() at the latest; until then `from` must not change.
template <class Row>
class RowEncoder {
public:
    KVJIT_INLINE void add(typename Row::T2* to, typename Row::T3* scales, const T1* from) {
        if constexpr (Row::kQuantised) {
            rows_[count_++] = {to, scales, from};
            if (count_ == kRowsAtOnce) finish();
        } else if constexpr (kSame<typename Row::T2, T1>) {
            move_row(to, from);
        } else {
            for_each_vector<kHeadDim>([&]<int N>(int d) { store<N>(to + d, load<N>(from + d)); });
        }
    }
    KVJIT_INLINE void finish() {
        if constexpr (Row::kQuantised) {
            if (count_ != 0) quantise_rows<Row>(rows_, count_);
            count_ = 0;
        }
    }
    /// Number of rows that were added and not yet written.
    KVJIT_INLINE int waiting() const { return count_; }

private:
    RowToQuantise<Row> rows_[Row::kQuantised ? kRowsAtOnce : 1];
    int count_ = 0;
};

/// Reads a slot as a row of T1, rounded once.
template <class Row = CacheRow>
KVJIT_INLINE void decode_row(T1* to, const typename Row::T2* from, const typename Row::T3* scales) {
    if constexpr (kSame<T1, typename Row::T2>)
        move_row(to, from);
    else
        for_each_vector<kHeadDim>([&]<int N>(int d) { store<N>(to + d, load_cache<N, Row>(from, scales, d)); });
}

}  // namespace kvjit

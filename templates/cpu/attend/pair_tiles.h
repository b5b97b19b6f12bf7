// Products of decode by AMX over a bfloat16 cache, whose rows are multiplied where they lie. A product of tiles takes
// 16 keys. For scores, 32 elements of each key are a row of its left operand, and pairs of 16 queries' elements its
// right one. For values, 32 elements of each are a row of 16 pairs of its right operand; the left one has two lines for
// each of 8 queries, with the probabilities p of the keys as pairs (p, 0) and as pairs (0, p): one line sums the even
// elements, the other the odd ones, and nothing is laid out anew.
#pragma once

#include "cpu/attend/decode_tile.h"
#include "cpu/machine/pairs.h"
#include "cpu/machine/tiles/contract.h"

namespace kvjit {

static_assert(kSame<T1, bf16_t> && kSame<T2, bf16_t> && kHeadDim % 32 == 0 && kPadDim == kHeadDim);

class PairTiles {
public:
    /// Keys of a tile, and those whose values are added to sums that stay in tiles meanwhile.
    static constexpr int kTileKeys = 16, kBlockKeys = 64;
    static constexpr int kScoredRows = 16, kSummedRows = 8;
    static_assert(kSummedRows % kRows == 0);
    /// Pair i of neighbouring elements of all rows' queries, then pair i + 1.
    using Query = u32[kHeadDim / 2][kScoredRows];

    // ---- Scores ----------------------------------------------------------------------------------------------------

    KVJIT_INLINE void score_keys(float* scores, const Query& query, const ChunkRows& rows, const ScoredKeys& scored) {
        if (scored.first_of_head) keys_ = tile_at(rows, scored.at, scored.head, copied_keys_);
        tiles_.zero<kScores>();
#pragma clang loop unroll(disable)
        for (int d = 0; d < kHeadDim; d += 32) {
            if (scored.first_of_head) prefetch_share<kHeadDim / 32, kTileKeys>(rows, scored.at, scored.head, d / 32);
            tiles_.load<kCache>(keys_.first + 2 * d, keys_.stride);
            tiles_.load<kQuery>(query[d / 2], 4 * kScoredRows);
            tiles_.multiply_bfloat16<kScores, kCache, kQuery>();
        }
        tiles_.store<kScores>(scores_, 4 * kScoredRows);
#pragma clang loop unroll(disable)
        for (i64 row = 0; row < smaller(scored.rows, kScoredRows); row += 4)
            store_four_rows(scores + row * kScoreStride, scores_[0] + row);
    }

    // ---- Sums of values --------------------------------------------------------------------------------------------

    /// sums[r] += the range's values times row r's probabilities. A row of sums has those of even elements, then those
    /// of odd ones.
    KVJIT_INLINE void add_values(float* sums, const u16* probabilities, const ChunkRows& rows,
                                 const ValueRange& range) {
        const i64 begin = range.begin / kTileKeys * kTileKeys;
#pragma clang loop unroll(disable)
        for (i64 t = begin; t < range.end; t += kTileKeys) {
            const i64 tile = (t - begin) / kTileKeys;
            weigh(weights_[tile], probabilities + t, range.rows);
            values_[tile] = values_at(probabilities + t, rows, range, t, copied_values_ + tile * kTileKeys * kHeadDim);
        }
        constexpr int kTogether = 4, kColumns = kHeadDim / 32, kRest = kColumns % kTogether;
#pragma clang loop unroll(disable)
        for (int column = 0; column < kColumns - kRest; column += kTogether)
            add_columns<kTogether>(sums, rows, range, column);
        if constexpr (kRest != 0) add_columns<kRest>(sums, rows, range, kColumns - kRest);
    }

private:
    /// 16 rows of the cache, `stride` bytes apart.
    struct TileAt {
        const char* first;
        i64 stride;
    };
    /// Numbers from one row's probabilities to the next row's, which lie in place of scores.
    static constexpr int kProbabilityStride = 2 * kScoreStride;
    /// Registers: 0 to 3 are sums of values.
    static constexpr int kScores = 4, kCache = 5, kQuery = 6, kWeights = 7;

    /// The 16 keys or values from `at` on: where they lie if they do at one stride, or copied.
    KVJIT_INLINE static TileAt tile_at(const ChunkRows& rows, i64 at, i64 head, bf16_t* copies) {
        if (rows.is_even(at)) return {row_bytes(rows, at, head), rows.row[at + 1] - rows.row[at]};
#pragma clang loop unroll(disable)
        for (i64 k = 0; k < kTileKeys; ++k) copy_row(copies + k * kHeadDim, rows.codes(at + k, head));
        return {reinterpret_cast<const char*>(copies), kRowBytes};
    }

    KVJIT_INLINE static void copy_row(bf16_t* to, const bf16_t* from) {
#pragma clang loop unroll(disable)
        for (int d = 0; d < kHeadDim; d += 32) store_vector(to + d, load_raw<u16, 32>(from + d));
    }

    /// Four rows' numbers of kCount keys, key after key.
    template <int kCount>
    KVJIT_INLINE static vf<4 * kCount> load_keys(const float* numbers) {
        if constexpr (kCount == 1)
            return load<4>(numbers);
        else
            return join<float, 2 * kCount>(load_keys<kCount / 2>(numbers),
                                           load_keys<kCount / 2>(numbers + kCount / 2 * kScoredRows));
    }
    /// Every other number from the kFirst-th on.
    template <int kFirst, int N, int... I>
    KVJIT_INLINE static vf<N / 2> every_other(vf<N> v, Sequence<int, I...>) {
        return __builtin_shufflevector(v, v, (2 * I + kFirst)...);
    }
    /// Stores the scores of four rows, whose numbers of 16 keys these are.
    KVJIT_INLINE static void store_four_rows(float* scores, const float* numbers) {
        const vf<64> keys = load_keys<kTileKeys>(numbers);
        const vf<32> even = every_other<0, 64>(keys, Lanes<32>{}), odd = every_other<1, 64>(keys, Lanes<32>{});
        store<16>(scores, every_other<0, 32>(even, Lanes<16>{}));
        store<16>(scores + kScoreStride, every_other<0, 32>(odd, Lanes<16>{}));
        store<16>(scores + 2 * kScoreStride, every_other<1, 32>(even, Lanes<16>{}));
        store<16>(scores + 3 * kScoreStride, every_other<1, 32>(odd, Lanes<16>{}));
    }

    /// The lines of a tile's probabilities, of `count` rows.
    KVJIT_INLINE static void weigh(u32 (*lines)[kTileKeys], const u16* probabilities, i64 count) {
#pragma clang loop unroll(disable)
        for (i64 first = 0; first < smaller(count, kSummedRows); first += kRows) {
#pragma clang loop unroll(full)
            for (i64 r = first; r < first + kRows; ++r) {
                const auto even =
                    __builtin_convertvector(load_raw<u16, 16>(probabilities + r * kProbabilityStride), vec<u32, 16>);
                store_vector(lines[2 * r], even);
                store_vector(lines[2 * r + 1], even << 16);
            }
        }
    }

    /// Which of 16 keys some row sees, as far as masks say.
    KVJIT_INLINE static vec<u16, 16> seen_keys(const u16* probabilities, i64 count) {
        if constexpr (kMaskRank == 0) return vec<u16, 16>(static_cast<u16>(1));
        vec<u16, 16> seen(static_cast<u16>(0));
#pragma clang loop unroll(disable)
        for (i64 r = 0; r < smaller(count, kSummedRows); ++r)
            seen |= load_raw<u16, 16>(probabilities + r * kProbabilityStride) ^ static_cast<u16>(0x8000);
        return seen;
    }

    /// Values t..t+15. Those that must not be read, and those that no row sees, are zeros.
    KVJIT_INLINE static TileAt values_at(const u16* probabilities, const ChunkRows& rows, const ValueRange& range,
                                         i64 t, bf16_t* copies) {
        const vec<u16, 16> seen = seen_keys(probabilities, range.rows);
        const bool all_seen = kMaskRank == 0 || __builtin_reduce_and(seen != 0) != 0;
        if (range.holds(t) && range.holds(t + kTileKeys - 1) && all_seen) return tile_at(rows, t, range.head, copies);
#pragma clang loop unroll(disable)
        for (i64 k = 0; k < kTileKeys; ++k)
            copy_row(copies + k * kHeadDim, value_row(rows, range, t + k, seen[k] != 0).codes);
        return {reinterpret_cast<const char*>(copies), kRowBytes};
    }

    template <int kColumn>
    KVJIT_INLINE void multiply_column(TileAt values) {
        tiles_.load<kCache>(values.first + 64 * kColumn, values.stride);
        tiles_.multiply_bfloat16<kColumn, kWeights, kCache>();
    }

    /// Adds the block's values to the sums of columns of 32 elements.
    template <int... kColumn>
    KVJIT_INLINE void add_columns(float* sums, const ChunkRows& rows, const ValueRange& range, int first,
                                  Sequence<int, kColumn...>) {
        constexpr i64 kStride = 4 * kHeadDim / 2;
        float* to = sums + 16 * first;
        if (range.first)
            (tiles_.zero<kColumn>(), ...);
        else
            (tiles_.load<kColumn>(to + 16 * kColumn, kStride), ...);
        const i64 begin = range.begin / kTileKeys * kTileKeys;
#pragma clang loop unroll(disable)
        for (i64 t = begin; t < range.end; t += kTileKeys) {
            const i64 tile = (t - begin) / kTileKeys;
            const TileAt values = {values_[tile].first + 64 * first, values_[tile].stride};
            tiles_.load<kWeights>(weights_[tile], 64);
            if (!range.of_head.empty())
                (prefetch_share<kHeadDim / 32, kTileKeys>(rows, t, range.head, first + kColumn), ...);
            (multiply_column<kColumn>(values), ...);
        }
        (tiles_.store<kColumn>(to + 16 * kColumn, kStride), ...);
    }
    template <int kCount>
    KVJIT_INLINE void add_columns(float* sums, const ChunkRows& rows, const ValueRange& range, int first) {
        add_columns(sums, rows, range, first, Lanes<kCount>{});
    }

    TileRegisters tiles_;
    TileAt keys_, values_[kBlockKeys / kTileKeys];
    alignas(64) float scores_[kTileKeys][kScoredRows];
    alignas(64) u32 weights_[kBlockKeys / kTileKeys][2 * kSummedRows][kTileKeys];
    alignas(64) bf16_t copied_keys_[kTileKeys * kHeadDim];
    alignas(64) bf16_t copied_values_[kBlockKeys * kHeadDim];
};

/// What decode asks for (decode_factors.h).
struct PairProducts {
    using Query = PairTiles::Query;
    using Scratch = PairTiles;
    static constexpr int kKeys = PairTiles::kTileKeys;
    static constexpr int kScoredRows = PairTiles::kScoredRows, kSummedRows = PairTiles::kSummedRows;
    static constexpr int kKeysTogether = PairTiles::kBlockKeys, kValueBlock = PairTiles::kBlockKeys;
    /// Tiles take the probabilities of 16 keys, whatever the registers.
    static constexpr int kSoftmaxLanes = PairTiles::kTileKeys;
    static constexpr int kPowerDegree = power_degree(true);

    KVJIT_INLINE static void load_query(Query& query, i64 r, const T1* from) {
#pragma clang loop vectorize(disable) unroll(disable)
        for (int i = 0; i < kHeadDim / 2; ++i) query[i][r] = load_raw<u32, 1>(from + 2 * i)[0];
    }

    KVJIT_INLINE static void score_keys(float* scores, const Query& query, const ChunkRows& rows, ScoredKeys scored,
                                        PairTiles& tiles) {
        tiles.score_keys(scores, query, rows, scored);
    }

    KVJIT_INLINE static void store_probabilities(float* scores, i64 t, vf<16> probabilities) {
        store_raw<u16, 16>(reinterpret_cast<char*>(scores) + 2 * t, round_to_bfloat16<16>(probabilities));
    }

    KVJIT_INLINE static void add_values(float* sums, const float* probabilities, const ChunkRows& rows,
                                        const ValueRange& range, PairTiles& tiles) {
        tiles.add_values(sums, reinterpret_cast<const u16*>(probabilities), rows, range);
    }

    /// Puts sums of values back into the order of elements. Those that aren't finite are made anew before, one value
    /// after the other: a value that isn't finite spoils sums of the elements beside its own, and of rows that don't
    /// see it, by products with 0.
    KVJIT_INLINE static void finish_sums(float* sums, const SummedRow& of) {
        if (!is_finite(sums)) add_one_by_one(sums, of);
        float odd[kHeadDim / 2];
        copy_half(odd, sums + kHeadDim / 2);
#pragma clang loop unroll(disable)
        for (int i = kHeadDim / 2 - 16; i >= 0; i -= 16)
            store<32>(sums + 2 * i, interleave<float, 16>(load<16>(sums + i), load<16>(odd + i)));
    }

private:
    KVJIT_INLINE static bool is_finite(const float* sums) {
        vi<16> spoilt(0);
#pragma clang loop unroll(disable)
        for (int d = 0; d < kHeadDim; d += 16) spoilt |= (bits_of<16>(load<16>(sums + d)) & 0x7f800000) == 0x7f800000;
        return !__builtin_reduce_or(spoilt);
    }

    /// The sums, in the order in which add_values leaves them.
    KVJIT_INLINE static void add_one_by_one(float* sums, const SummedRow& of) {
        const u16* probabilities = reinterpret_cast<const u16*>(of.probabilities);
        clear(sums, kHeadDim);
#pragma clang loop unroll(disable)
        for (i64 t = of.keys.begin; t < of.keys.end; ++t)
            if (kMaskRank == 0 || probabilities[t] != 0x8000)
                add_value(sums, probabilities[t], of.values.codes(t, of.head));
    }

    KVJIT_INLINE static void add_value(float* sums, u16 probability, const bf16_t* value) {
        const vf<16> weight(from_bits<1>(vi<1>(probability << 16))[0]);
#pragma clang loop unroll(disable)
        for (int d = 0; d < kHeadDim; d += 32) {
            const vec<u32, 16> pairs = load_raw<u32, 16>(value + d);
            float *even = sums + d / 2, *odd = even + kHeadDim / 2;
            store<16>(even, fma<16>(weight, every_other_of<0, 16>(pairs), load<16>(even)));
            store<16>(odd, fma<16>(weight, every_other_of<1, 16>(pairs), load<16>(odd)));
        }
    }

    KVJIT_INLINE static void copy_half(float* to, const float* from) {
#pragma clang loop unroll(disable)
        for (int i = 0; i < kHeadDim / 2; i += 16) store<16>(to + i, load<16>(from + i));
    }
};

}  // namespace kvjit

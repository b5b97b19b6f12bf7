// relayout: writes tokens of one cache to another, copied or converted (docs/semantics.md, sections 2 and 6).
#include "common/relayout.h"
#include "common/abi.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cpu/cache/copy.h"
#include "cpu/cache/row_codec.h"

namespace kvjit {

// ---- Converting ----------------------------------------------------------------------------------------------------

/// Converts rows of format From to format To, by way of T1.
template <class From, class To>
class Converter {
public:
    KVJIT_INLINE void add(const RunRows& to, const RunRows& from, i64 token, i64 head) {
        auto* codes = reinterpret_cast<typename To::T2*>(row_at(to.codes, token, head));
        auto* scales = reinterpret_cast<typename To::T3*>(row_at(to.scales, token, head));
        const auto* from_codes = reinterpret_cast<const typename From::T2*>(row_at(from.codes, token, head));
        const auto* from_scales = reinterpret_cast<const typename From::T3*>(row_at(from.scales, token, head));
        if constexpr (kSame<typename From::T2, T1>) {
            encoder_.add(codes, scales, from_codes);
        } else if constexpr (kSame<typename To::T2, T1>) {
            decode_row<From>(codes, from_codes, from_scales);
        } else {
            T1* row = rows_[encoder_.waiting()];
            decode_row<From>(row, from_codes, from_scales);
            encoder_.add(codes, scales, row);
        }
    }
    KVJIT_INLINE void finish() { encoder_.finish(); }

private:
    RowEncoder<To> encoder_;
    T1 rows_[kRowsAtOnce][kHeadDim];
};

/// Converts a run's rows, in the destination's order.
template <class From, class To>
KVJIT_NOINLINE void convert_run(const RunRows& to, const RunRows& from, i64 tokens, i64 heads) {
    Converter<From, To> converter;
    if (to.codes.head_stride <= to.codes.token_stride) {
        for (i64 i = 0; i < tokens; ++i)
            for (i64 h = 0; h < heads; ++h) converter.add(to, from, i, h);
    } else {
        for (i64 h = 0; h < heads; ++h)
            for (i64 i = 0; i < tokens; ++i) converter.add(to, from, i, h);
    }
    converter.finish();
}

// ---- Copying -------------------------------------------------------------------------------------------------------

/// The two outer axes of a copy: layers, and keys and values.
struct Repeats {
    Axis layers, parts;
};

KVJIT_INLINE void copy_plane(const RunPlane& to, const RunPlane& from, i64 row_bytes, i64 tokens, i64 heads,
                             const Repeats& repeats, bool streams) {
    Axis axes[4] = {{heads, from.head_stride, to.head_stride},
                    {tokens, from.token_stride, to.token_stride},
                    repeats.parts,
                    repeats.layers};
    copy_nest(nest_of(row_bytes, axes), to.first, from.first, streams);
}

/// Bytes from keys to values.
KVJIT_INLINE i64 way(const abi::LayerPlane& key, const abi::LayerPlane& value) {
    return reinterpret_cast<i64>(value.plane.base) - reinterpret_cast<i64>(key.plane.base);
}

KVJIT_INLINE bool alike(const abi::LayerPlane& key, const abi::LayerPlane& value) {
    return key.layer_stride == value.layer_stride && key.plane.page_stride == value.plane.page_stride &&
           key.plane.token_stride == value.plane.token_stride && key.plane.head_stride == value.plane.head_stride;
}

/// Whether keys and values of a cache have the same strides, and its layers one table.
KVJIT_INLINE bool is_regular(const abi::RelayoutSide& side) {
    return side.layer_entries == 0 && alike(side.key, side.value) && alike(side.key_scale, side.value_scale);
}

template <class Row>
inline constexpr i64 kCodeBytes = bytes_of<typename Row::T2>(kHeadDim);
template <class Row>
inline constexpr i64 kScaleBytes = bytes_of<typename Row::T3>(Row::kScales);

/// Copies a run's layers, keys and values all at once.
template <class Row>
KVJIT_INLINE void copy_whole(const abi::RelayoutArgs& args, i64 tokens, const RunPlace& from, const RunPlace& to,
                             const abi::RelayoutItem& item) {
    const auto copy = [&](const abi::LayerPlane& key_to, const abi::LayerPlane& key_from, i64 entry_to, i64 entry_from,
                          const Axis& parts, i64 row_bytes) {
        const Axis layers = {item.layer_end - item.layer_begin, key_from.layer_stride, key_to.layer_stride};
        copy_plane(run_plane(key_to, entry_to, to, item.layer_begin),
                   run_plane(key_from, entry_from, from, item.layer_begin), row_bytes, tokens, args.num_kv_heads,
                   {layers, parts}, args.streams != 0);
    };
    copy(args.to.key, args.from.key, to.entry, from.entry,
         {2, way(args.from.key, args.from.value), way(args.to.key, args.to.value)}, kCodeBytes<Row>);
    if constexpr (Row::kQuantised)
        copy(args.to.key_scale, args.from.key_scale, to.scale_entry, from.scale_entry,
             {2, way(args.from.key_scale, args.from.value_scale), way(args.to.key_scale, args.to.value_scale)},
             kScaleBytes<Row>);
}

template <class Row>
KVJIT_INLINE void copy_rows(const RunRows& to, const RunRows& from, i64 tokens, i64 heads, bool streams) {
    const Repeats none = {{1, 0, 0}, {1, 0, 0}};
    copy_plane(to.codes, from.codes, kCodeBytes<Row>, tokens, heads, none, streams);
    if constexpr (Row::kQuantised) copy_plane(to.scales, from.scales, kScaleBytes<Row>, tokens, heads, none, streams);
}

// ---- 2. Work split: runs, one after the other ----------------------------------------------------------------------

/// Copies or converts a run's keys or values in one layer.
template <class From, class To>
KVJIT_INLINE void move_rows(const abi::RelayoutArgs& args, i64 run, i64 layer, bool value) {
    const abi::TokenRun& tokens = args.runs[run];
    const RunRows from = run_rows<From>(args.from, place_of(args.from, run, layer, tokens.from_token), layer, value);
    const RunRows to = run_rows<To>(args.to, place_of(args.to, run, layer, tokens.to_token), layer, value);
    if constexpr (kSame<From, To>)
        copy_rows<To>(to, from, tokens.count, args.num_kv_heads, args.streams != 0);
    else
        convert_run<From, To>(to, from, tokens.count, args.num_kv_heads);
}

template <class From, class To>
KVJIT_INLINE void move_run(const abi::RelayoutArgs& args, i64 run, const abi::RelayoutItem& item) {
    for (i64 layer = item.layer_begin; layer < item.layer_end; ++layer) {
        move_rows<From, To>(args, run, layer, false);
        move_rows<From, To>(args, run, layer, true);
    }
}

template <class From, class To>
KVJIT_INLINE void relayout_item(const abi::RelayoutArgs& args, const abi::RelayoutItem& item) {
    const bool regular = is_regular(args.from) && is_regular(args.to);
    for (i64 run = item.run_begin; run < item.run_end; ++run) {
        if constexpr (kSame<From, To>) {
            const abi::TokenRun& tokens = args.runs[run];
            if (regular) {
                copy_whole<To>(args, tokens.count, place_of(args.from, run, 0, tokens.from_token),
                               place_of(args.to, run, 0, tokens.to_token), item);
                continue;
            }
        }
        move_run<From, To>(args, run, item);
    }
    if (args.streams != 0) finish_streaming();
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

extern "C" void kvjit_relayout(const kvjit::abi::RelayoutArgs* args, const kvjit::abi::RelayoutItem* item) {
    kvjit::relayout_item<kvjit::FromRow, kvjit::ToRow>(*args, *item);
}

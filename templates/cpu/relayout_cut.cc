// relayout where a layout cuts rows or pages into pieces: copies or converts row by row (docs/semantics.md, sections 2
// and 4).
#include "common/relayout_cut.h"
#include "common/abi.h"
#include "common/relayout.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cpu/cache/cut_rows.h"
#include "cpu/cache/row_codec.h"

namespace kvjit {

/// The elements of a row of From, contiguous: where they lie, or gathered into `room`.
template <class From>
KVJIT_INLINE const typename From::T2* whole_row(typename From::T2* room, const char* from, const abi::Pieces& pieces) {
    if constexpr (From::kRowIsWhole) {
        return reinterpret_cast<const typename From::T2*>(from);
    } else {
        gather_row<From::kNeighbours>(room, from, pieces.element_stride);
        return room;
    }
}

/// Writes contiguous elements as a row of To.
template <class To>
KVJIT_INLINE void write_row(char* to, const abi::Pieces& pieces, const typename To::T2* row) {
    if constexpr (To::kRowIsWhole)
        move_row(reinterpret_cast<typename To::T2*>(to), row);
    else
        scatter_row<To::kNeighbours>(to, pieces.element_stride, row);
}

/// Keys or values of a run in one layer.
template <class From, class To>
class Move {
public:
    Move(const CutPlane& from, const CutPlane& to) : from_(from), to_(to) {}

    KVJIT_INLINE void row(i64 token, i64 head) const {
        typename From::T2 room[kHeadDim];
        const auto* read = whole_row<From>(room, cut_row<From>(from_, token, head), from_.pieces);
        if constexpr (kSame<typename From::Row, typename To::Row>) {
            move(read, token, head);
        } else {
            T1 row[kHeadDim];
            decode_row<typename From::Row>(row, read, scales<From>(from_, token, head));
            write(row, token, head);
        }
    }

private:
    template <class Side>
    KVJIT_INLINE static typename Side::T3* scales(const CutPlane& plane, i64 token, i64 head) {
        if constexpr (Side::Row::kQuantised)
            return reinterpret_cast<typename Side::T3*>(cut_scales<Side>(plane, token, head));
        else
            return nullptr;
    }

    KVJIT_INLINE void move(const typename From::T2* read, i64 token, i64 head) const {
        write_row<To>(cut_row<To>(to_, token, head), to_.pieces, read);
        if constexpr (To::Row::kQuantised)
            move_bytes<static_cast<int>(sizeof(typename To::T3)) * To::Row::kScales>(scales<To>(to_, token, head),
                                                                                     scales<From>(from_, token, head));
    }

    KVJIT_INLINE void write(const T1* row, i64 token, i64 head) const {
        RowEncoder<typename To::Row> encoder;
        char* to = cut_row<To>(to_, token, head);
        if constexpr (To::kRowIsWhole) {
            encoder.add(reinterpret_cast<typename To::T2*>(to), scales<To>(to_, token, head), row);
            encoder.finish();
        } else {
            typename To::T2 elements[kHeadDim];
            encoder.add(elements, nullptr, row);
            write_row<To>(to, to_.pieces, elements);
        }
    }

    CutPlane from_, to_;
};

template <class From, class To>
KVJIT_NOINLINE void move_run(const CutPlane& from, const CutPlane& to, i64 tokens, i64 heads) {
    const Move<From, To> move(from, to);
    for (i64 h = 0; h < heads; ++h) {
        for (i64 i = 0; i < tokens; ++i) move.row(i, h);
    }
}

// ---- 2. Work split: runs, one after the other ----------------------------------------------------------------------

KVJIT_INLINE void relayout_item(const abi::RelayoutArgs& args, const abi::RelayoutItem& item) {
    for (i64 run = item.run_begin; run < item.run_end; ++run) {
        const abi::TokenRun& tokens = args.runs[run];
        for (i64 layer = item.layer_begin; layer < item.layer_end; ++layer) {
            const RunPlace from = place_of(args.from, run, layer, tokens.from_token);
            const RunPlace to = place_of(args.to, run, layer, tokens.to_token);
            move_run<FromKeys, ToKeys>(cut_keys(args.from, from, layer), cut_keys(args.to, to, layer), tokens.count,
                                       args.num_kv_heads);
            move_run<FromValues, ToValues>(cut_values(args.from, from, layer), cut_values(args.to, to, layer),
                                           tokens.count, args.num_kv_heads);
        }
    }
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

extern "C" void kvjit_relayout(const kvjit::abi::RelayoutArgs* args, const kvjit::abi::RelayoutItem* item) {
    kvjit::relayout_item(*args, *item);
}

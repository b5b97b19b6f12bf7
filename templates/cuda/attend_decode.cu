// attend, for few query rows: bound by reading keys and values, which happens once for all rows of a kv head, and which
// several blocks may share by splitting the keys (docs/semantics.md, section 3).
#include "common/abi.h"
#include "common/shape.h"
#include "common/spec_block.h"
#include "cuda/attend_dot.h"
#include "cuda/attend_mma_decode.h"
#include "cuda/attend_split.h"
#include "cuda/attend_work.h"

namespace kvjit {

// ---- 1. Contract ---------------------------------------------------------------------------------------------------

static_assert(kHeadDim % 8 == 0 && kHeadDim <= 256 && kGroup >= 1);
static_assert(!kQuantised || kHeadDim % kQuantGroup == 0);
static_assert(!kSame<T1, i8_t>);

inline constexpr AttendShape kShape = decode_shape(kFormat, kGroup, kMaxSharedBytes);
inline constexpr int kTiles = decode_tiles(kGroup);
static_assert(kShape.shared_bytes <= kMaxSharedBytes);

// ---- 2. Work split: a block has a tile of one sequence's and kv head's rows, and one split of their keys ------------

/// What block_x() counts: tiles of a kv head, kv heads, sequences.
struct TilePlace {
    i64 sequence, kv_head, tile;
};

KVJIT_INLINE TilePlace place_of_block(const abi::Launch& launch) {
    const u32 head = static_cast<u32>(block_x()) / kTiles, heads = static_cast<u32>(launch.num_kv_heads);
    return {head / heads, head % heads, static_cast<u32>(block_x()) % kTiles};
}

KVJIT_INLINE void attend_block(const abi::CudaAttendArgs& args) {
    const TilePlace place = place_of_block(args.launch);
    if (is_faulty(args.launch) || place.sequence >= args.launch.batch_size) return;
    const CallSequence sequence = sequence_of(args.attend, place.sequence);
    const i64 rows = sequence.tokens * kGroup, row_begin = place.tile * kShape.rows;
    if (sequence.tokens > decode_tokens(kGroup) || row_begin >= rows) return;
    const i64 row_end = row_begin + kShape.rows < rows ? row_begin + kShape.rows : rows;
    const i64 visible = visible_keys(sequence, (row_end - 1) / kGroup);
    const Split split = split_of_block(args, visible);
    if (split.number >= split.used) return;

    const AttendWork work = {
        args.attend,   sequence,  table_row(args.attend.table, place.sequence),
        place.kv_head, row_begin, row_end,
        split.begin,   split.end, split.used > 1 ? split_partials(args, kShape.rows, split.number) : nullptr};
    if constexpr (uses_tensor_cores(true, kFormat, kGroup))
        attend_mma_decode(work);
    else
        attend_dot<true>(work);
    if (split.used > 1) finish_splits(args, work, kShape.rows, split.used);
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kShape.threads, kvjit::kShape.blocks_per_sm)
kvjit_attend_decode(KVJIT_PARAM(kvjit::abi::CudaAttendArgs) args) {
    kvjit::attend_block(args);
}

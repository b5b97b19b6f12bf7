// attend, for many query rows: bound by arithmetic. A block has a tile of rows and passes over all the keys that they
// see (docs/semantics.md, section 3).
#include "common/abi.h"
#include "common/shape.h"
#include "common/spec_block.h"
#include "cuda/attend_dot.h"
#include "cuda/attend_mma_prefill.h"
#include "cuda/attend_work.h"

namespace kvjit {

// ---- 1. Contract ---------------------------------------------------------------------------------------------------

static_assert(kHeadDim % 8 == 0 && kHeadDim <= 256 && kGroup >= 1);
static_assert(!kQuantised || kHeadDim % kQuantGroup == 0);
static_assert(!kSame<T1, i8_t>);

inline constexpr AttendShape kShape = prefill_shape(kFormat, kGroup, kMaxSharedBytes);
static_assert(kShape.shared_bytes <= kMaxSharedBytes);

// ---- 2. Work split: tiles of rows of all sequences, the last ones, which see most keys, first -----------------------

/// Number of sequence b's first tile. All of its tiles lie before sequence b+1's first: see prefill_tiles.
KVJIT_INLINE i64 first_tile(const abi::AttendArgs& args, i64 b) {
    return prefill_tiles(args.seqstarts[b], b, kGroup, kShape.rows);
}

KVJIT_INLINE void attend_block(const abi::CudaAttendArgs& args) {
    if (is_faulty(args.launch)) return;
    const abi::AttendArgs& attend = args.attend;
    const i64 tile = first_tile(attend, args.launch.batch_size) - 1 - block_x();
    if (tile < 0) return;
    const i64 b = find_sequence(args.launch.batch_size, tile, [&](i64 s) { return first_tile(attend, s); });
    const CallSequence sequence = sequence_of(attend, b);
    const i64 rows = sequence.tokens * kGroup, row_begin = (tile - first_tile(attend, b)) * kShape.rows;
    if (sequence.tokens <= decode_tokens(kGroup) || row_begin >= rows) return;
    const i64 row_end = row_begin + kShape.rows < rows ? row_begin + kShape.rows : rows;
    const i64 visible = visible_keys(sequence, (row_end - 1) / kGroup);

    const AttendWork work = {attend,  sequence, table_row(attend.table, b), block_y(), row_begin, row_end, 0,
                             visible, nullptr};
    if constexpr (uses_tensor_cores(false, kFormat, kGroup))
        attend_mma_prefill(work);
    else
        attend_dot<false>(work);
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kShape.threads, kvjit::kShape.blocks_per_sm)
kvjit_attend_prefill(KVJIT_PARAM(kvjit::abi::CudaAttendArgs) args) {
    kvjit::attend_block(args);
}

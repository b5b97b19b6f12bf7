// merge: combines partial outputs by their maxima and sums, or by their lse (docs/semantics.md, section 2).
#include "common/abi.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cpu/attend/partial.h"

namespace kvjit {

// ---- 1. Contract ---------------------------------------------------------------------------------------------------

static_assert(kHeadDim % 8 == 0);
static_assert(!kSame<T1, i8_t>);

// ---- 2. Work split: the item's (token, query head), one after the other --------------------------------------------

// ---- 5. Merge: the parts of one (token, query head), in ascending order --------------------------------------------

/// Merges into `sum`. `acc` and `stat`: offsets of part 0, in elements of Partial and in floats.
KVJIT_INLINE Running merge_head(const abi::MergeArgs& args, const abi::MergeItem& item, i64 acc, i64 stat, float* sum) {
    for_each_vector<kHeadDim>([&]<int N>(int d) { store<N>(sum + d, vf<N>(0.0f)); });
    Running running = no_key();
    const Partial* partials = reinterpret_cast<const Partial*>(args.acc);
    for (i64 part = 0; part < item.parts; ++part) {
        const i64 at = stat + part * item.stat_part;
        const Partial* row = partials + acc + part * item.acc_part;
        if (args.sum) {
            admit_row(sum, running, row, args.max[at], args.sum[at]);
        } else {
            admit_output(sum, running, row, args.max[at]);
        }
    }
    return running;
}

// ---- 6. Store ------------------------------------------------------------------------------------------------------

KVJIT_INLINE void write_head(const abi::MergeArgs& args, const abi::MergeItem& item, i64 token, i64 head) {
    const i64 acc = item.acc + (token - item.token_begin) * item.acc_token + (head - item.head_begin) * item.acc_head;
    const i64 stat =
        item.stat + (token - item.token_begin) * item.stat_token + (head - item.head_begin) * item.stat_head;
    float sum[kHeadDim];
    const Running running = merge_head(args, item, acc, stat, sum);
    const Running whole = is_empty_part(running.max) ? Running{0.0f, 1.0f} : add_sink(running, args.sinks, head);
    char* out = args.output.base + token * args.output.token_stride + head * args.output.head_stride;
    // Without a key the sum is 0, unless a part was NaN.
    finish_row(reinterpret_cast<T1*>(out), sum, whole);
    if (args.lse) args.lse[token * args.lse_token_stride + head * args.lse_head_stride] = finish_lse(running);
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

extern "C" void kvjit_merge(const kvjit::abi::MergeArgs* args, const kvjit::abi::MergeItem* item) {
    for (kvjit::i64 token = item->token_begin; token < item->token_end; ++token)
        for (kvjit::i64 head = item->head_begin; head < item->head_end; ++head)
            kvjit::write_head(*args, *item, token, head);
}

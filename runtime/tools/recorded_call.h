// A recorded MultiHeadCacheAttention call: what went in, and what must come out (docs/semantics.md, section 9).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvjit/kvjit.h"
#include "result.h"
#include "safetensors.h"
#include "tensor.h"

namespace kvjit::tool {

struct RecordedCall {
    kvjit_spec spec;  // op MultiHeadCacheAttention; fields that its other fields make meaningless keep their defaults
    std::int64_t num_heads = 0;
    std::int64_t num_kv_heads = 0;
    std::int64_t num_layers = 0;
    std::int64_t layer_idx = 0;
    std::int64_t decoding_batches = 0;
    std::int64_t max_seqlen = 0;
    std::int64_t max_kvlen = 0;
    std::int64_t num_repeat = 1;
    kvjit_batch score;  // softmax_scale and the numbers of the score rules; all else as kvjit_batch_init has it

    std::vector<std::int64_t> seqstarts, kvstarts, start_pos;
    Tensor query, current_key, current_value;
    Tensor cachestarts, cache, scale, attn_mask, sinks;  // the last three are absent where the spec has none
    Tensor out_cache, out_scale;
    Tensor out_key, out_value;  // (K, Hkv * num_repeat, D) float32, to be rounded to t1
    Tensor out_attn_output, out_lse;

    std::int64_t batch_size() const { return static_cast<std::int64_t>(start_pos.size()); }
    kvjit_dtype t1() const { return static_cast<kvjit_dtype>(spec.t1); }
    /// Extent of one of the cache's axes by its letter in the layout; 1 if the layout lacks it.
    std::int64_t cache_extent(char axis) const;
};

/// Metadata beyond section 9's that begins with `pmx_` is for people (how the reference was checked). Any other field
/// or tensor is refused: it might change what the call means.
/// Errors name the file, the field or tensor, what it is and what was expected.
Result<RecordedCall> read_recorded_call(const SafetensorsFile& file);

}  // namespace kvjit::tool

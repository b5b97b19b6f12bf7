// vLLM's index arrays of a step as a batch, as they are: nothing is copied, converted or allocated. C++17, header-only,
// depends on kvjit.hpp alone.
//
//     const std::string fields = std::string("layout=2NTHD,page_size=16,") + kSpecFields;
//     auto spec = KernelSpec::parse(fields);
//     Arrays arrays; arrays.seq_lens = ...; arrays.batch(heads)
//
// Tensors of the cache are a layer's own in vLLM: layouts without L, num_layers 1. The arrays are read by every run of
// a plan, by the GPU on CUDA targets: they stay the engine's, and stay as they are until the plan is released.
#ifndef KVJIT_INTEROP_VLLM_H
#define KVJIT_INTEROP_VLLM_H

#include <cstdint>

#include "kvjit/kvjit.hpp"

namespace kvjit::interop::vllm {

/// What a spec needs beside its op, its layout and its page_size, which is vLLM's block_size.
inline constexpr const char* kSpecFields = "cache_mode=block_table,index_type=i32,starts_type=i32";

/// Under vLLM's names. Thread-safe as any struct of pointers is.
struct Arrays {
    std::int64_t num_reqs = 0;                      // B
    std::int64_t num_tokens = 0;                    // entries of slot_mapping, padded ones too
    const std::int32_t* query_start_loc = nullptr;  // (num_reqs + 1)
    const std::int32_t* seq_lens = nullptr;         // (num_reqs): keys, the new tokens among them
    const std::int32_t* block_table = nullptr;      // (num_reqs, max_blocks)
    std::int64_t max_blocks = 0;
    std::int64_t block_table_stride = 0;         // elements from row to row; 0: max_blocks
    const std::int64_t* slot_mapping = nullptr;  // (num_tokens): block * block_size + offset, -1: not stored; or null:
                                                 // new tokens go where block_table has their positions
    std::int64_t num_blocks = 0;                 // of the cache
    std::int64_t max_query_len = 0;              // upper bounds; 0: unknown, which CUDA plans without host_batch refuse
    std::int64_t max_seq_len = 0;

    /// The batch of these arrays. `num_heads`: query heads; kv heads follow from the spec's group. To KeyValueCache,
    /// which has no group, it is the number of kv heads. Numbers that don't fit are refused where a plan is made.
    Batch batch(std::int64_t num_heads) const {
        Batch batch;
        batch.batch_size = num_reqs;
        batch.num_heads = num_heads;
        batch.num_blocks = num_blocks;
        batch.max_seqlen = max_query_len;
        batch.max_kvlen = max_seq_len;
        batch.seqstarts = query_start_loc;
        batch.kvlens = seq_lens;
        batch.cachestarts = Tensor(block_table, KVJIT_I32, {num_reqs, max_blocks});
        if (block_table_stride != 0) batch.cachestarts.strides[0] = block_table_stride;
        if (slot_mapping != nullptr) batch.store_slots = Tensor(slot_mapping, KVJIT_I64, {num_tokens});
        return batch;
    }
};

}  // namespace kvjit::interop::vllm

#endif

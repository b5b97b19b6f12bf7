// SGLang's index arrays as a batch, as they are: nothing is copied, converted or allocated. C++17, header-only, depends
// on kvjit.hpp alone.
//
// SGLang has one row of token slots for each request of its pool, and picks rows by req_pool_indices. Keys and values
// are two tensors (slots, H, D) a layer: layout=THD, num_layers 1. The arrays are read by every run of a plan, by the
// GPU on CUDA targets: they stay the engine's, and stay as they are until the plan is released.
#ifndef KVJIT_INTEROP_SGLANG_H
#define KVJIT_INTEROP_SGLANG_H

#include <cstdint>
#include <type_traits>

#include "kvjit/kvjit.hpp"

namespace kvjit::interop::sglang {

/// What a spec needs beside its op and layout: pages of one token, in an int32 table. starts_type goes by `Index`.
inline constexpr const char* kSpecFields = "cache_mode=page_table,page_size=1,index_type=i32";

/// Under SGLang's names. A spec has one type for arrays of requests: where the engine has two, those of the other type
/// have to be made anew. Index: the elements of its arrays of requests, std::int32_t or std::int64_t; the spec's
/// starts_type is i32 or i64 accordingly. Thread-safe as any struct of pointers is.
template <class Index>
struct Arrays {
    static_assert(std::is_same_v<Index, std::int32_t> || std::is_same_v<Index, std::int64_t>);

    std::int64_t batch_size = 0;                 // B
    std::int64_t num_tokens = 0;                 // entries of out_cache_loc
    const Index* qo_indptr = nullptr;            // (B + 1): where each request's new tokens begin
    const Index* seq_lens = nullptr;             // (B): keys, the new tokens among them
    const Index* req_pool_indices = nullptr;     // (B): rows of req_to_token
    const std::int32_t* req_to_token = nullptr;  // (requests, max_context_len)
    std::int64_t requests = 0, max_context_len = 0;
    const std::int64_t* out_cache_loc =
        nullptr;                      // (num_tokens): slots of new tokens; or null: as req_to_token has them
    std::int64_t slots = 0;           // tokens of the cache
    std::int64_t max_extend_len = 0;  // upper bounds; 0: unknown, which CUDA plans without a mirror refuse
    std::int64_t max_seq_len = 0;

    /// The batch of these arrays. `num_heads`: query heads; kv heads follow from the spec's group. To KeyValueCache,
    /// which has no group, it is the number of kv heads. Numbers that don't fit are refused where a plan is made.
    Batch batch(std::int64_t num_heads) const {
        Batch batch;
        batch.batch_size = batch_size;
        batch.num_heads = num_heads;
        batch.max_tokens = slots;
        batch.max_seqlen = max_extend_len;
        batch.max_kvlen = max_seq_len;
        batch.seqstarts = qo_indptr;
        batch.kvlens = seq_lens;
        batch.cachestarts = Tensor(req_to_token, KVJIT_I32, {requests, max_context_len});
        batch.row_index = req_pool_indices;
        if (out_cache_loc != nullptr) batch.store_slots = Tensor(out_cache_loc, KVJIT_I64, {num_tokens});
        return batch;
    }
};

}  // namespace kvjit::interop::sglang

#endif

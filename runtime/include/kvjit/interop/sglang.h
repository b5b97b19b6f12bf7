// SGLang's index arrays as a batch, as they are: nothing is copied, converted or allocated, unless those of requests
// are of several types. C++17, header-only, depends on kvjit.hpp alone.
//
// SGLang has one row of token slots for each request of its pool, and picks rows by req_pool_indices. Keys and values
// are two tensors (slots, H, D) a layer: layout=THD, num_layers 1. The arrays are read by every run of a plan, by the
// GPU on CUDA targets: they stay the engine's, and stay as they are until the plan is released.
#ifndef KVJIT_INTEROP_SGLANG_H
#define KVJIT_INTEROP_SGLANG_H

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kvjit/kvjit.hpp"

namespace kvjit::interop::sglang {

/// What a spec needs beside its op and layout: pages of one token, in an int32 table. starts_type goes by `Starts`.
inline constexpr const char* kSpecFields = "cache_mode=page_table,page_size=1,index_type=i32";

/// Under SGLang's names. Each array of requests has a type of its own, std::int32_t or std::int64_t: SGLang has rows
/// and lengths in int64, what its attention backends make of them in int32. The spec's starts_type is i32 or i64 as
/// `Starts` is. Thread-safe as any struct of pointers is.
template <class Starts, class Lens = Starts, class Rows = Starts>
struct Arrays {
    template <class Index>
    static constexpr bool kIsIndex = std::is_same_v<Index, std::int32_t> || std::is_same_v<Index, std::int64_t>;
    static_assert(kIsIndex<Starts> && kIsIndex<Lens> && kIsIndex<Rows>);

    std::int64_t batch_size = 0;                 // B
    std::int64_t num_tokens = 0;                 // entries of out_cache_loc
    const Starts* qo_indptr = nullptr;           // (B + 1): where each request's new tokens begin
    const Lens* seq_lens = nullptr;              // (B): keys, the new tokens among them
    const Rows* req_pool_indices = nullptr;      // (B): rows of req_to_token
    const std::int32_t* req_to_token = nullptr;  // (requests, max_context_len)
    std::int64_t requests = 0, max_context_len = 0;
    const std::int64_t* out_cache_loc =
        nullptr;                      // (num_tokens): slots of new tokens; or null: as req_to_token has them
    std::int64_t slots = 0;           // tokens of the cache
    std::int64_t max_extend_len = 0;  // upper bounds; 0: unknown, which CUDA plans without host_batch refuse
    std::int64_t max_seq_len = 0;

    /// The batch of these arrays, where those of requests are of one type. `num_heads`: query heads; kv heads follow
    /// from the spec's group. To KeyValueCache, which has no group, it is the number of kv heads. Numbers that don't
    /// fit are refused where a plan is made.
    Batch batch(std::int64_t num_heads) const {
        static_assert(std::is_same_v<Starts, Lens> && std::is_same_v<Starts, Rows>,
                      "a batch has one type for them: give room for copies");
        return batch_of(num_heads, seq_lens, req_pool_indices);
    }

    /// The same where they are of several types: a batch has one for all, so seq_lens and req_pool_indices are copied
    /// to `copies`, 2B elements of the caller's that stay as they are until the plan is released. Arrays and copies lie
    /// in host memory; on a GPU copying them is the engine's.
    Batch batch(std::int64_t num_heads, Starts* copies) const {
        if (batch_size <= 0 || seq_lens == nullptr || req_pool_indices == nullptr)
            return batch_of(num_heads, nullptr, nullptr);
        Starts* const rows = copies + batch_size;
        std::transform(seq_lens, seq_lens + batch_size, copies, clamped<Lens>);
        std::transform(req_pool_indices, req_pool_indices + batch_size, rows, clamped<Rows>);
        return batch_of(num_heads, copies, rows);
    }

private:
    /// What doesn't fit is no length and no row, and is refused.
    template <class Index>
    static Starts clamped(Index number) {
        using Limits = std::numeric_limits<Starts>;
        return static_cast<Starts>(
            std::clamp<std::int64_t>(number, std::int64_t{Limits::min()}, std::int64_t{Limits::max()}));
    }

    Batch batch_of(std::int64_t num_heads, const Starts* lens, const Starts* rows) const {
        Batch batch;
        batch.batch_size = batch_size;
        batch.num_heads = num_heads;
        batch.max_tokens = slots;
        batch.max_seqlen = max_extend_len;
        batch.max_kvlen = max_seq_len;
        batch.seqstarts = qo_indptr;
        batch.kvlens = lens;
        batch.cachestarts = Tensor(req_to_token, KVJIT_I32, {requests, max_context_len});
        batch.row_index = rows;
        if (out_cache_loc != nullptr) batch.store_slots = Tensor(out_cache_loc, KVJIT_I64, {num_tokens});
        return batch;
    }
};

}  // namespace kvjit::interop::sglang

#endif

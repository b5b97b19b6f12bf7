// KsanaLLM's cache, and Ascend ATB's on the same memory, as views of kvjit: header-only, C++17.
//
// A block of KsanaLLM is (2, L, block_tokens, Hkv, D): the keys of all layers, then the values. In one region blocks
// lie one after another, block b at base + b * block_bytes. ATB sees the same bytes as pieces of one layer's
// block_tokens tokens, (num_blocks * 2 * L, block_tokens, Hkv, D), twice:
//
//     kcache = base                                     piece b*2L + l holds the keys of block b, layer l
//     vcache = base + L * block_tokens * Hkv * D        elements; the same piece of it holds the values
//
// so that one id table serves both: block b is ATB's b*2L + l. No function here moves a byte of a cache.
#pragma once

#include <cstdint>

#include "kvjit/interop/ksana/tables.h"

namespace kvjit::interop {

/// What the spec that a pool is made with needs besides.
inline constexpr const char* kKsanaSpecFields = "index_type=i32,starts_type=i32";

/// The index arrays that KsanaLLM makes of a step for ATB, as they are, under its names: nothing is copied. They are
/// read by every run of a plan, by the GPU on CUDA targets: they stay the engine's, and stay as they are until the plan
/// is released. One plan serves all layers, and a run is told the layer. On CUDA targets seq_len_host lies where the
/// GPU reaches it, too. Thread-safe as any struct of pointers is.
struct KsanaArrays {
    std::int64_t batch_size = 0;                        // B
    std::int64_t num_tokens = 0;                        // S: atb_attention_attr[0]
    std::int64_t max_num_blocks_per_query = 0;          // atb_attention_attr[1]
    const std::int32_t* seqstarts = nullptr;            // (B + 1): where each request's new tokens begin
    const std::int32_t* seq_len_host = nullptr;         // (B): keys, the new tokens among them
    const std::int32_t* layers_slot_mapping = nullptr;  // (L, S): slots of new tokens
    const std::int32_t* layers_block_table = nullptr;   // (L, B, max_num_blocks_per_query): ATB's ids; where all decode
    std::int64_t max_seqlen = 0;  // upper bounds; 0: unknown, which CUDA plans without host_batch refuse
    std::int64_t max_kvlen = 0;

    /// A batch of pool.spec(kAtb), by layers_block_table. Numbers that don't fit are refused where a plan is made.
    Batch batch(const KsanaPool& pool) const {
        Batch batch = batch_of(pool, KsanaView::kAtb);
        batch.kvlens = seq_len_host;
        batch.cachestarts =
            Tensor(layers_block_table, KVJIT_I32, {pool.num_layers(), batch_size, max_num_blocks_per_query});
        if (layers_slot_mapping != nullptr)
            batch.store_slots = Tensor(layers_slot_mapping, KVJIT_I32, {pool.num_layers(), num_tokens});
        return batch;
    }

    /// A batch of pool.spec(kAtbSlots), by layers_slot_mapping alone, which is all that KsanaLLM makes for prompts:
    /// each request has no keys but its new tokens.
    Batch prompts(const KsanaPool& pool) const {
        Batch batch = batch_of(pool, KsanaView::kAtbSlots);
        batch.kvstarts = seqstarts;
        batch.cachestarts = Tensor(layers_slot_mapping, KVJIT_I32, {pool.num_layers(), num_tokens});
        return batch;
    }

private:
    Batch batch_of(const KsanaPool& pool, KsanaView view) const {
        Batch batch;
        pool.set_extents(view, batch);
        batch.num_layers = pool.num_layers();
        batch.batch_size = batch_size;
        batch.max_seqlen = max_seqlen;
        batch.max_kvlen = max_kvlen;
        batch.seqstarts = seqstarts;
        return batch;
    }
};

}  // namespace kvjit::interop

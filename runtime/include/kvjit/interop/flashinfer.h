// FlashInfer's index arrays of a paged cache as a batch, as they are: nothing is copied, converted or allocated. C++17,
// header-only, depends on kvjit.hpp alone.
//
// A cache is (N, 2, T, H, D) in FlashInfer's layout NHD and (N, 2, H, T, D) in HND, layout=N2THD and layout=N2HTD here;
// or two tensors, layout=NTHD and layout=NHTD. It is a layer's own: num_layers 1. The arrays are read by every run of a
// plan, by the GPU on CUDA targets: they stay the engine's, and stay as they are until the plan is released.
#ifndef KVJIT_INTEROP_FLASHINFER_H
#define KVJIT_INTEROP_FLASHINFER_H

#include <cstdint>

#include "kvjit/kvjit.hpp"

namespace kvjit::interop::flashinfer {

/// What a spec needs beside its op, its layout and its page_size.
inline constexpr const char* kSpecFields = "cache_mode=block_table,index_type=i32,starts_type=i32";

/// Under FlashInfer's names. Thread-safe as any struct of pointers is.
struct Arrays {
    std::int64_t batch_size = 0;                     // B
    const std::int32_t* qo_indptr = nullptr;         // (B + 1)
    const std::int32_t* paged_kv_indptr = nullptr;   // (B + 1): sequence b's pages are paged_kv_indices[indptr[b]] on
    const std::int32_t* paged_kv_indices = nullptr;  // (nnz)
    std::int64_t nnz = 0;                            // entries of paged_kv_indices, or more: indptr says how many
    const std::int32_t* paged_kv_last_page_len = nullptr;  // (B): 1 to page_size
    std::int64_t num_pages = 0;                            // of the cache
    std::int64_t max_qo_len = 0;  // upper bounds; 0: unknown, which CUDA plans without host_batch
    std::int64_t max_kv_len = 0;  // refuse

    /// The batch of these arrays. `num_heads`: query heads; kv heads follow from the spec's group. To KeyValueCache,
    /// which has no group, it is the number of kv heads. Numbers that don't fit are refused where a plan is made.
    Batch batch(std::int64_t num_heads) const {
        Batch batch;
        batch.batch_size = batch_size;
        batch.num_heads = num_heads;
        batch.num_blocks = num_pages;
        batch.max_seqlen = max_qo_len;
        batch.max_kvlen = max_kv_len;
        batch.seqstarts = qo_indptr;
        batch.last_page_len = paged_kv_last_page_len;
        batch.cachestarts = Tensor(paged_kv_indices, KVJIT_I32, {nnz});
        batch.rowstarts = paged_kv_indptr;
        return batch;
    }
};

}  // namespace kvjit::interop::flashinfer

#endif

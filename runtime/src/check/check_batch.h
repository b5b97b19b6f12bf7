// Checks of a batch: docs/semantics.md, section 8.
#pragma once

#include <cstdint>
#include <string_view>

#include "generator/operator.h"

namespace kvjit::rt {

/// The most query heads with ALiBi: a plan stores a slope for each of them.
inline constexpr std::int64_t kMaxSlopes = std::int64_t{1} << 24;

/// How a plan uses its batch. Options must have passed check_options.
struct BatchUse {
    kvjit_check_level level;
    bool stores = true;          // whether runs may store
    std::int64_t alignment = 1;  // the least alignment of blocks' addresses
};

/// On CUDA targets, tensors of rows and blocks at addresses begin at multiples of this many bytes.
inline constexpr std::int64_t kCudaAlignment = 16;

/// `alignment`: 1, or kCudaAlignment.
BatchUse batch_use(const gen::KernelSpec& spec, const kvjit_plan_options& options, std::int64_t alignment);

/// Query heads make whole groups of those that share a kv head, where they alone give the number of kv heads. `name`:
/// of the number, in errors, KVJIT_BAD_ARGUMENT.
gen::Result<void> check_whole_groups(const gen::KernelSpec& spec, std::int64_t num_heads, std::string_view name);

/// Checks a batch without reading its arrays, except alibi_slopes: scalars in range, H == Hkv * group where both are
/// given, sizes whose bytes fit 64 bits, pointers (null only where B == 0; aligned to their element), type, rank,
/// extents and strides of cachestarts. Precondition: `spec` is validated. O(H). Errors and thread safety as
/// check_batch.
/// check_batch also checks, at every level: S and K not negative, S at most abi::kMaxNewTokens. KVJIT_CHECK_BATCH and
/// up, in O(B): starts begin at 0 and are monotonic, m == start_pos + n (without start_pos m >= n), max_seqlen and
/// max_kvlen (0: unknown) not too small, row_index and rowstarts inside cachestarts, m <= entries of the row *
/// page_size. KVJIT_CHECK_FULL, in O(B + pages + r log r), r the runs of new tokens on neighbouring slots: every entry
/// that a key uses is inside the cache, and no two new tokens of the call share a slot. Entries past a row's last used
/// page are never read.
///
/// Arguments that an operator doesn't use are ignored, so that kernels of several operators can share one batch:
/// MultiHeadAttention uses no start_pos, num_layers, cachestarts ...; Merge only seqstarts and num_heads; KeyValueCache
/// only num_kv_heads (num_heads where that is 0). Two things are refused nevertheless, because they point to a mistake:
/// rowstarts or row_index in a mode that has no use for them, and alibi_slopes, soft_cap or a window for an attention
/// kernel whose spec has none.
///
/// Whether a call stores its new tokens is only known at run time, so a plan that may store always checks new tokens. A
/// plan that stores nothing ignores start_pos, and allows n > m and shared slots; what it reads is checked as usual.
/// softmax_scale may be negative, for which the formula has a meaning; NaN and infinity are refused.
///
/// Errors: KVJIT_BAD_ARGUMENT, KVJIT_BAD_DTYPE, KVJIT_BAD_SHAPE, KVJIT_BAD_INDEX. Thread-safe. Writes nothing;
/// KVJIT_CHECK_FULL allocates 24 bytes a run.
gen::Result<void> check_batch_scalars(const gen::KernelSpec& spec, const kvjit_batch& batch, const BatchUse& use);

/// Checks the same, and the contents of the arrays, as far as `use.level` says.
gen::Result<void> check_batch(const gen::KernelSpec& spec, const kvjit_batch& batch, const BatchUse& use);

}  // namespace kvjit::rt

// Checks of a plan's options.
#pragma once

#include <cstddef>
#include <cstdint>

#include "generator/error.h"
#include "kvjit/kvjit.h"

namespace kvjit::rt {

/// Checks the CPU's workers. `executor`: null, or initialised, with a run function and at least one thread; else up to
/// 1024 threads of the library's own pool, which spin for -1 (the default) to 1000000 us. Errors: KVJIT_BAD_ARGUMENT.
/// O(1). Thread-safe.
gen::Result<void> check_workers(const kvjit_executor* executor, std::uint32_t num_threads, std::int64_t spin_us);

/// The name of an option that is about the CPU's workers and isn't the default; null: there is none.
template <class Options>
const char* worker_option(const Options& options) {
    if (options.executor != nullptr) return "executor";
    if (options.num_threads != 0) return "num_threads";
    return options.spin_us != -1 ? "spin_us" : nullptr;
}

/// check_level is one of kvjit_check_level; stores_nothing is 0 or 1; check_workers; workspace is 64-byte aligned (the
/// plan checks its size). Errors: KVJIT_BAD_ARGUMENT. O(1). Thread-safe.
gen::Result<void> check_options(const kvjit_plan_options& options);

/// A workspace of the caller's has the bytes that the plan needs. Errors: KVJIT_BAD_ARGUMENT. O(1). Thread-safe.
gen::Result<void> check_workspace(std::size_t given, std::size_t needed);

/// The name of an option that fixes how a GPU splits keys; null: there is none.
inline const char* split_option(const kvjit_plan_options& options) {
    if (options.split_keys != 0) return "split_keys";
    return options.prefill_split_keys != 0 ? "prefill_split_keys" : nullptr;
}

/// A CPU plan takes neither stream nor host_batch, and no split_option. Errors: KVJIT_BAD_ARGUMENT. O(1). Thread-safe.
gen::Result<void> check_no_cuda_options(const kvjit_plan_options& options);

/// A CUDA plan takes no executor and no threads; split_keys and prefill_split_keys are 0 or positive multiples of
/// `unit`, up to abi::kMaxKeys. Errors: KVJIT_BAD_ARGUMENT. O(1). Thread-safe.
gen::Result<void> check_cuda_options(const kvjit_plan_options& options, std::int64_t unit);

}  // namespace kvjit::rt

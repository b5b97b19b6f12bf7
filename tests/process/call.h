// The call that the tests of processes run, of one spec.
#pragma once

#include <cstdint>

#include "call/call.h"
#include "kvjit/kvjit.hpp"

namespace kvjit::test {

inline constexpr char kCallSpec[] =
    "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f32,quant_bit=8,cache_mode=page_table,page_size=16,layout=L2HTD";
inline constexpr int kCallPrograms = 4;  // store, attend for decode, attend for prefill, merge

/// Of a spec, with `tokens` new tokens and `keys` keys in each sequence. Their past is not in the cache: its slots hold
/// made-up codes.
ApiCall make_call(std::int64_t sequences, std::int64_t tokens, std::int64_t keys, const char* spec = kCallSpec);

/// FNV-1a of the output's bytes.
std::uint64_t output_hash(const ApiCall& call);

/// Plans and runs the call on a kernel of kCallSpec.
Result<void> plan_and_run(const Kernel& kernel, const ApiCall& call, const PlanOptions& options = PlanOptions());

/// The engine's kernel of kCallSpec. Errors of the engine's creation come out here too.
Result<Kernel> call_kernel(const EngineOptions& options);

}  // namespace kvjit::test

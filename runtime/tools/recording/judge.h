// Holds what a call wrote to what it should have written.
#pragma once

#include "compare.h"
#include "recording/run.h"

namespace kvjit::tool {

/// Compares each of `got` that `expected` has: cache, scale, key and value to the last bit; attn_output and lse within
/// their tolerance, or to the last bit where `bits` is true.
Verdict judge(const Recording& call, const Results& got, const Results& expected, bool bits);

/// The results that the recording holds; the cache as it was before a call that stores nothing.
Results recorded_results(const Recording& call, const std::map<std::string, Tensor>& from);

}  // namespace kvjit::tool

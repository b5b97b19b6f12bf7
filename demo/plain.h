// Attention as an engine's author would write it first: plain loops in float32 over the same cache.
#pragma once

#include "call.h"

namespace demo {

/// Attends as kvjit's call does, on so many threads, each of which takes the next row and head. Returns the seconds
/// that this took. Throws as run_together does.
double attend_plainly(const CacheMemory& cache, const RaggedBatch& batch, const LayerCall& call, int threads);

}  // namespace demo

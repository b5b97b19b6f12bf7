// What a recorded call should have written, in float64 by plain loops (oracle/).
#pragma once

#include "recording/run.h"

namespace kvjit::tool {

/// attn_output and lse in float32, rounded from float64; key and value in float32, to be rounded to t1; cache, scales
/// and blocks as they are to be, bit for bit. Precondition: kvjit has run the call, so that its index arrays are right.
/// Errors: it would take more memory than there is.
Result<Results> compute_results(const Recording& call);

}  // namespace kvjit::tool

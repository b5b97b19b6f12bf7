// Runs the three operators that a recorded call describes through the public API.
#pragma once

#include "compare.h"
#include "handles.h"
#include "kvjit/kvjit.h"
#include "machine.h"
#include "recorded_call.h"
#include "result.h"

namespace kvjit::tool {

/// The spec that `op` has in the recorded call. Fields that mean nothing to `op` keep their defaults.
///   MultiHeadCacheAttention  query, current_*, cache -> out.attn_output, out.lse, out.cache, out.scale
///   KeyValueCache            current_*, cache -> out.cache, out.scale, out.key, out.value
///   MultiHeadAttention       query, out.key, out.value -> out.attn_output, out.lse; in t1 where t1 holds the
///                            recorded key and value exactly, else in float32
Result<kvjit_spec> op_spec(const RecordedCall& call, kvjit_op op);

/// Runs `op` and compares every output. Outputs start as NaN, so what isn't written can't pass.
/// Errors: kvjit refused the call, or the emulator stopped it.
RunResult<Verdict> replay_op(const Machine& machine, const RecordedCall& call, kvjit_op op);

}  // namespace kvjit::tool

// Runs a recorded call through the public API.
#pragma once

#include <map>
#include <string>

#include "recording/recording.h"
#include "replay_call.h"

namespace kvjit::tool {

/// What a call wrote, by the names of kvjit_tensors, `blocks` and `scale_blocks`: results, and the cache afterwards.
using Results = std::map<std::string, Tensor>;

/// Results start as NaN, so that what isn't written shows. Errors: kvjit refused the call, as a sentence.
Result<Results> run_recording(const Machine& machine, const Recording& call);

}  // namespace kvjit::tool

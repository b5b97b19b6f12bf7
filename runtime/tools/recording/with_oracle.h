// A recording's file with what an oracle has computed.
#pragma once

#include <string>

#include "recording/run.h"
#include "safetensors.h"

namespace kvjit::tool {

/// The bytes of a file that has all of `file`, and `computed` as out.*, as far as the call gives it: of the results
/// those that `ran` has, and the cache where the call stores something. Errors: `file` can't be read, or has a tensor,
/// for people, of a type that kvjit doesn't have.
Result<std::string> with_oracle(const SafetensorsFile& file, const Recording& call, const Results& ran,
                                const Results& computed);

}  // namespace kvjit::tool

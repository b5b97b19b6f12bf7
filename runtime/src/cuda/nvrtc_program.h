// One compile with NVRTC.
#pragma once

#include <string>
#include <vector>

#include "compiler.h"
#include "cuda/nvrtc_api.h"

namespace kvjit::rt {

struct NvrtcRequest {
    std::string source;
    std::string name;
    std::vector<const char*> flags;
    bool ptx;  // false: a cubin
};

/// Errors: KVJIT_COMPILE_FAILED with NVRTC's log; KVJIT_BAD_TARGET where it refuses the architecture alone;
/// KVJIT_COMPILER_MISSING where its builtins library is missing; KVJIT_OUT_OF_MEMORY. Thread-safe, parallel.
gen::Result<CompileOutput> run_nvrtc(const nvrtc::Api& api, const NvrtcRequest& request);

}  // namespace kvjit::rt

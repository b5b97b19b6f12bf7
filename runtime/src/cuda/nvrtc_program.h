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
    bool ptx;  // else a cubin
};

/// Errors: KVJIT_COMPILE_FAILED with NVRTC's log; KVJIT_BAD_TARGET where it takes the flags but for the architecture;
/// KVJIT_COMPILER_MISSING where it misses its builtins library; KVJIT_OUT_OF_MEMORY. Thread-safe, parallel.
gen::Result<CompileOutput> run_nvrtc(const nvrtc::Api& api, const NvrtcRequest& request);

}  // namespace kvjit::rt

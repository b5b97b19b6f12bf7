// CUDA's compiler: NVRTC, opened at the first compile.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "compiler.h"

namespace kvjit::rt {

struct NvrtcOptions {
    std::string path;  // of libnvrtc.so.13 or .12; empty: see find_nvrtc (nvrtc_search.h)
    /// CUDA's major version by the driver, 0 for none: which NVRTC to prefer. Called at most once. Empty: 0.
    std::function<int()> driver_major;
    bool line_info =
        false;  // template lines for compute-sanitizer and Nsight: a quarter more time, three times the bytes
};

/// kObject: a cubin for exactly the target's architecture; its log has a report for each entry (compile_report.h).
/// kAsm: PTX. kIr: KVJIT_BAD_ARGUMENT.
std::unique_ptr<Compiler> make_nvrtc_compiler(NvrtcOptions options);

}  // namespace kvjit::rt

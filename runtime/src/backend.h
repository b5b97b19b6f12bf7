// A kind of target as the engine sees it: what compiles its programs, loads them and plans calls of them.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "compiler.h"
#include "generator/program.h"
#include "images/image.h"
#include "kvjit/kvjit.h"
#include "log.h"
#include "plan.h"
#include "relayout/sides.h"

namespace kvjit::rt {

/// Thread-safe.
class Backend {
public:
    virtual ~Backend() = default;

    virtual Compiler& compiler() = 0;
    /// Whether images for `target` can run here. Errors: KVJIT_BAD_TARGET, KVJIT_CUDA_ERROR, KVJIT_OUT_OF_MEMORY.
    virtual gen::Result<void> check_machine(const gen::Target& target) = 0;
    /// `name`: shown by profilers and debuggers. Errors: KVJIT_BAD_FILE for bytes that are no such object; for other
    /// causes KVJIT_BAD_TARGET, KVJIT_OUT_OF_MEMORY or KVJIT_CUDA_ERROR.
    virtual gen::Result<ImagePtr> load(std::string_view object, const gen::Program& program,
                                       const std::string& name) = 0;
    /// See kvjit_plan_create.
    virtual gen::Result<std::unique_ptr<Plan>> plan(KernelPtr kernel, const kvjit_batch& batch,
                                                    const kvjit_plan_options& options) = 0;
    /// See kvjit_relayout_plan_create.
    virtual gen::Result<std::unique_ptr<Plan>> plan(KernelPtr kernel, const RelayoutRequest& request,
                                                    const kvjit_plan_options& options) = 0;
};

/// Indexed by gen::Backend. Null: this build lacks it.
using Backends = std::array<std::unique_ptr<Backend>, gen::kBackends>;

struct BackendOptions {
    std::string compiler = {};   // see make_compiler (cpu/clang_compiler.h)
    std::string templates = {};  // the folder of templates; empty: those in the library
    Log log = {};                // of what a variable of the environment names and that can't be used
};

/// The backends of this build. Opens no library.
Backends make_backends(const BackendOptions& options);

}  // namespace kvjit::rt

// Owners of kvjit's handles, and its errors as the tool's.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kvjit/kvjit.h"
#include "result.h"

namespace kvjit::tool {

template <auto kRelease>
struct Release {
    template <class T>
    void operator()(T* handle) const {
        kRelease(handle);
    }
};
using Engine = std::unique_ptr<kvjit_engine, Release<kvjit_engine_release>>;
using Target = std::unique_ptr<kvjit_target, Release<kvjit_target_release>>;
using Kernel = std::unique_ptr<kvjit_kernel, Release<kvjit_kernel_release>>;
using Plan = std::unique_ptr<kvjit_plan, Release<kvjit_plan_release>>;

/// "KVJIT_BAD_SHAPE: cache.shape[1] is ..."
std::string error_text(const kvjit_error& error);

/// Where an engine looks before it compiles.
struct KernelSources {
    std::optional<std::string> cache_dir;  // as kvjit_engine_options has it; absent: the default
    std::vector<std::string> bundles;      // which are asked first, in this order
    std::string template_dir;              // of what is compiled; "": the engine's own choice
};
/// Warnings go to standard error. `record`: where calls are recorded, and which; "" for none.
Result<Engine> open_engine(const KernelSources& sources, bool count_runs = false, const std::string& record = "");
Result<Target> open_target(const std::string& name);
/// Its canonical text.
std::string target_text(const kvjit_target* target);
/// What --target takes for a canonical text, which may be another machine's; one that this version doesn't know stays.
std::string target_option(const std::string& text);
/// Whether `name` stands for a GPU, or its emulation.
bool is_cuda(const std::string& name);
Result<Kernel> open_kernel(kvjit_engine* engine, const kvjit_spec& spec, const kvjit_target* target);
/// Fails where the target's kernels can't run on this machine, as a small one shows.
Result<void> try_target(kvjit_engine* engine, const kvjit_target* target);

/// Why a run failed.
struct RunError {
    std::string why;
    bool found_wrong = false;  // the call ran, and the emulator found its kernel doing what no kernel may: a race, say
};
template <class T>
using RunResult = std::expected<T, RunError>;

[[nodiscard]] inline std::unexpected<RunError> not_run(std::string why) {
    return std::unexpected(RunError{std::move(why)});
}
/// For who only tells why.
Result<void> in_words(const RunResult<void>& ran);

/// A plan, a run of one, and waiting for its runs.
Result<Plan> make_plan(kvjit_kernel* kernel, const kvjit_batch& batch, const kvjit_plan_options& options);
RunResult<void> start_plan(kvjit_plan* plan, const kvjit_tensors& tensors, std::int64_t layer);
RunResult<void> finish_plan(kvjit_plan* plan);

/// "head_dim=128 group=4".
Result<kvjit_spec> parse_spec(const std::string& text);
/// The spec's canonical text.
Result<std::string> spec_text(const kvjit_spec& spec);

}  // namespace kvjit::tool

#include "relayout/relayout_plan.h"

#include <utility>

#include "check/arithmetic.h"
#include "check/check_options.h"
#include "check/check_tensors.h"
#include "check/fault.h"

namespace kvjit::rt {
namespace {

using gen::Result;

/// Combines a cache's planes of a layer and of the next one, which differ only in the base.
abi::LayerPlane layered(const abi::Plane& plane, const abi::Plane& next, std::int64_t head) {
    const auto base = reinterpret_cast<std::intptr_t>(plane.base);
    const std::int64_t layer = reinterpret_cast<std::intptr_t>(next.base) - base;
    abi::Plane first = plane;
    first.base = reinterpret_cast<char*>(base + head * plane.head_stride);
    return {first, layer};
}

/// Checks that the side has layers first..first+count-1.
Result<void> check_layers(std::string name, std::int64_t first, std::int64_t count, const CacheView& cache) {
    const std::int64_t most = cache.num_layers() - count;
    if (first >= 0 && first <= most) return {};
    return refuse(KVJIT_BAD_ARGUMENT, std::move(name), first, most,
                  text("of ", cache.num_layers(), " layers the plan copies ", count, ", so it takes 0 to ", most));
}

Result<void> check_side(std::string_view name, const RelayoutSideView& side, const kvjit_tensors& tensors) {
    if (auto right = check_tensors(side.batch, {}, tensors, 0); !right)
        return std::unexpected(error_of_side(name, right.error()));
    return {};
}

}  // namespace

Result<void> check_relayout_kernel(const Kernel& kernel, const kvjit_plan_options& options) {
    if (!gen::is_relayout(kernel.spec()))
        return gen::fail(KVJIT_BAD_ARGUMENT, "kernel",
                         text("kernel is of op ", op_name(kernel.spec()),
                              "; kvjit_plan_create makes its plans, a relayout takes one of op Relayout"));
    const char* given = options.stores_nothing != 0     ? "stores_nothing"
                        : options.host_batch != nullptr ? "host_batch"
                                                        : split_option(options);
    if (given == nullptr) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, given, text(given, " is given; plans of op Relayout have no use for it"));
}

Result<void> check_no_relayout(const Kernel& kernel) {
    if (!gen::is_relayout(kernel.spec())) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, "kernel",
                     "kernel is of op Relayout; kvjit_relayout_plan_create makes its plans");
}

Result<void> RelayoutPlan::prepare() {
    if (auto tables = apart_.check_tables(); !tables) return tables;
    if (runs_.runs.empty()) return {};
    Result<ImageSet> ready = kernel_->prepare(KVJIT_PROGRAM_RELAYOUT);
    if (!ready) return std::unexpected(ready.error());
    images_ = *std::move(ready);
    return {};
}

Result<void> RelayoutPlan::run(const kvjit_tensors&, std::int64_t) {
    return gen::fail(KVJIT_BAD_ARGUMENT, "plan", "plan is of op Relayout; kvjit_relayout_run runs it");
}

Result<void> RelayoutPlan::check_tensors_of(const kvjit_tensors& from, std::int64_t from_layer, const kvjit_tensors& to,
                                            std::int64_t to_layer) const {
    if (auto right = check_side(kFromSide, view_.from, from); !right) return right;
    if (auto right = check_side(kToSide, view_.to, to); !right) return right;
    if (auto right = check_layers("from_layer", from_layer, view_.num_layers, view_.from.batch.cache); !right)
        return right;
    if (auto right = check_layers("to_layer", to_layer, view_.num_layers, view_.to.batch.cache); !right) return right;
    return apart_.check_run(runs_, from, from_layer, to, to_layer);
}

abi::RelayoutSide RelayoutPlan::bind(const RelayoutSideView& side, const RunEntries& entries,
                                     const kvjit_tensors& tensors, std::int64_t layer) const {
    const abi::Cache here = side.batch.cache.planes(tensors, layer), next = side.batch.cache.planes(tensors, layer + 1);
    const auto plane = [&](abi::Plane abi::Cache::* of) { return layered(here.*of, next.*of, side.head); };
    const CacheView::CachePieces pieces = side.batch.cache.pieces(tensors);
    const std::int64_t layer_entries = entries.layers > 1 ? std::ssize(runs_.runs) : 0;
    const std::int64_t* codes = place_of(entries.codes) + layer * layer_entries;
    return {.key = plane(&abi::Cache::key),
            .value = plane(&abi::Cache::value),
            .key_scale = plane(&abi::Cache::key_scale),
            .value_scale = plane(&abi::Cache::value_scale),
            .key_pieces = pieces.key,
            .value_pieces = pieces.value,
            .entries = codes,
            .scales = entries.scales.empty() ? codes : place_of(entries.scales) + layer * layer_entries,
            .layer_entries = layer_entries,
            .token_step = side.ranks};
}

Result<void> RelayoutPlan::relayout(const kvjit_tensors& from, std::int64_t from_layer, const kvjit_tensors& to,
                                    std::int64_t to_layer) {
    if (auto right = check_tensors_of(from, from_layer, to, to_layer); !right) return right;
    if (auto right = check_run(from, to); !right) return right;
    if (runs_.runs.empty()) return {};
    return launch({.from = bind(view_.from, runs_.from, from, from_layer),
                   .to = bind(view_.to, runs_.to, to, to_layer),
                   .runs = place_of_runs(),
                   .num_kv_heads = view_.num_kv_heads,
                   .streams = 0});
}

std::int64_t RelayoutPlan::bytes() const {
    const gen::KernelSpec& to = view_.to.batch.spec;
    const std::int64_t row = gen::code_elements(to) * gen::dtype_bytes(gen::cache_type(to));
    return saturating_product(runs_.tokens, view_.num_layers, view_.num_kv_heads, 2 * row);
}

std::int64_t RelayoutPlan::moved_bytes(const RelayoutSideView& side) const {
    return saturating_product(runs_.tokens, view_.num_layers, view_.num_kv_heads, 2 * row_bytes(side.batch.spec));
}

RunWork RelayoutPlan::work(const kvjit_batch*) const {
    return {.stored = moved_bytes(view_.to), .read = moved_bytes(view_.from)};
}

std::string RelayoutPlan::outline() const {
    return text(gen::print_spec(kernel_->spec()), "\nsequences: ", view_.from.batch.batch_size,
                "\ntokens: ", runs_.tokens, "\nlayers: ", view_.num_layers, "\nruns: ", runs_.runs.size(),
                "\nbytes of a run: ", bytes(), "\n");
}

}  // namespace kvjit::rt

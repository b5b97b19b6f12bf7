#include "bench/workload.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "calls/arrays.h"
#include "calls/rng.h"
#include "calls/tensors.h"
#include "case_format.h"
#include "recording/run.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr std::int64_t kMostLayers = 1024, kDrawn = 1 << 16;
constexpr float kSlope = 0.1F, kSoftCap = 30;

calls::CallShape call_shape(const kvjit_spec& spec, const Lengths& lengths, std::int64_t kv_heads,
                            std::int64_t layers) {
    return {spec, lengths.tokens, lengths.keys, kv_heads, layers};
}

calls::CallTensors::Rows rows_of(const calls::IndexArrays& arrays) {
    return {arrays.seqstarts.back(), arrays.kvstarts.back()};
}

/// Index arrays, tensors and the plans of a call.
class MadeUpCall {
public:
    MadeUpCall(const Setting& setting, const calls::CallShape& shape, calls::Rng& rng)
        : arrays_(shape), tensors_(arrays_, rows_of(arrays_), allocate(setting.memory)) {
        if (oracle::has_cache(shape.spec) && shape.spec.cache_mode != KVJIT_OFFSET) arrays_.place_tokens(&rng);
        if (shape.spec.is_alibi != 0) arrays_.slopes.assign(static_cast<std::size_t>(arrays_.batch.num_heads), kSlope);
        if (shape.spec.has_soft_cap != 0) arrays_.batch.soft_cap = kSoftCap;
        const auto one_token = [](std::int64_t tokens) { return tokens == 1; };
        arrays_.batch.decoding_batches = std::ranges::find_if_not(shape.tokens, one_token) - shape.tokens.begin();
        batch_ = place_arrays(setting.machine.place);
        const auto repeat = [&](auto memory, auto pattern) { setting.memory.repeat(memory, pattern); };
        calls::draw_inputs(tensors_.tensors, rng, kDrawn, repeat);
        tensors_.tensors.lse = {};  // a user of one call doesn't ask for it
    }

    Result<void> plan(const Machine& machine, kvjit_kernel* kernel) {
        auto plan = make_plan(kernel, batch_, plan_options(machine, arrays_.batch));
        if (!plan) return fail(plan.error());
        plans_.push_back(*std::move(plan));
        return {};
    }
    Result<void> start(std::int64_t layer, std::size_t engine) {
        return in_words(start_plan(plans_[engine].get(), tensors_.tensors, layer));
    }
    Result<void> finish() {
        for (const Plan& plan : plans_) {
            if (auto done = in_words(finish_plan(plan.get())); !done) return done;
        }
        return {};
    }

private:
    static calls::Allocate allocate(DeviceMemory& memory) {
        return [&memory](std::size_t bytes) { return memory.allocate(bytes); };
    }

    /// The batch as kernels find it; that of `arrays_` is the host's.
    kvjit_batch place_arrays(const Place& place) {
        kvjit_batch placed = arrays_.batch;
        if (place) {
            arrays_.move_blocks(place);
            arrays_.bind(place);
            placed = arrays_.batch;
        }
        arrays_.bind();
        return place ? placed : arrays_.batch;
    }

    calls::IndexArrays arrays_;
    calls::CallTensors tensors_;
    kvjit_batch batch_;
    std::vector<Plan> plans_;  // one for each engine
};

/// Layers are those of one cache, where the layout has an axis for them, else caches of their own.
class MadeUpWorkload final : public Workload {
public:
    void add(const Setting& setting, const calls::CallShape& shape, calls::Rng& rng) {
        spec_ = shape.spec;
        calls_.push_back(std::make_unique<MadeUpCall>(setting, shape, rng));
    }
    Result<void> add_engine(const Machine& machine) override {
        auto kernel = open_kernel(machine.engine, spec_, machine.target);
        if (!kernel) return fail(kernel.error());
        kernels_.push_back(*std::move(kernel));
        for (const auto& call : calls_) {
            if (auto planned = call->plan(machine, kernels_.back().get()); !planned) return planned;
        }
        return {};
    }
    Result<void> start(std::int64_t layer, std::size_t engine) override {
        if (calls_.size() == 1) return calls_[0]->start(layer, engine);
        return calls_[static_cast<std::size_t>(layer)]->start(0, engine);
    }
    Result<void> finish() override {
        for (const auto& call : calls_) {
            if (auto done = call->finish(); !done) return done;
        }
        return {};
    }

private:
    kvjit_spec spec_{};
    std::vector<Kernel> kernels_;
    std::vector<std::unique_ptr<MadeUpCall>> calls_;
};

class RecordedWorkload final : public Workload {
public:
    explicit RecordedWorkload(Recording recording) : recording_(std::move(recording)) {}

    /// Its tensors are the run's own.
    Result<void> add_engine(const Machine& machine) override {
        auto made = RecordedRun::make(machine, recording_);
        if (!made) return fail(made.error());
        runs_.push_back(*std::move(made));
        return {};
    }
    Result<void> start(std::int64_t, std::size_t engine) override { return in_words(runs_[engine].start()); }
    Result<void> finish() override {
        for (const RecordedRun& run : runs_) {
            if (auto done = in_words(run.finish()); !done) return done;
        }
        return {};
    }

private:
    Recording recording_;
    std::vector<RecordedRun> runs_;
};

/// Of a call with one layer: tensors, and blocks that are no tensors.
double bytes_of_layer(const calls::CallShape& shape) {
    const calls::IndexArrays arrays(shape);
    const calls::CallTensors tensors(arrays, rows_of(arrays), [](std::size_t) { return nullptr; });
    double bytes = static_cast<double>(arrays.code_blocks.memory.size() + arrays.scale_blocks.memory.size());
    for (const std::span<std::byte> piece : tensors.pieces()) bytes += static_cast<double>(piece.size());
    return bytes;
}

/// Errors: one layer, or as many as were asked for, don't fit into the memory that is left.
Result<std::int64_t> count_layers(const Device& device, const WorkloadShape& shape, double layer_bytes) {
    const Result<std::size_t> left = device.free_bytes();
    if (!left) return fail(left.error());
    const double room = 0.8 * static_cast<double>(*left);
    const std::int64_t least = std::max<std::int64_t>(1, shape.layers);
    if (static_cast<double>(least) * layer_bytes > room) {
        return fail(std::to_string(least) + " layers need " +
                    std::to_string(std::llround(static_cast<double>(least) * layer_bytes / 1e6)) +
                    " MB; there is memory for " + std::to_string(std::llround(room / 1e6)) + " MB");
    }
    if (shape.layers != 0) return shape.layers;
    const double most = std::min<double>(kMostLayers, room / layer_bytes);
    return static_cast<std::int64_t>(std::min(most, std::ceil(device.bytes_beyond_cache() / layer_bytes)));
}

/// Layers of one tensor.
bool has_layer_axis(const kvjit_spec& spec) {
    return oracle::has_cache(spec) && std::string_view(spec.layout).contains('L');
}

}  // namespace

Result<std::unique_ptr<Workload>> made_up_workload(const Setting& setting, const kvjit_spec& spec,
                                                   const std::string& batch, const WorkloadShape& shape) {
    if (spec.op == KVJIT_OP_RELAYOUT) {
        return fail(
            "op is Relayout; calls are made up of KeyValueCache, MultiHeadAttention, MultiHeadCacheAttention and "
            "Merge");
    }
    const Result<Lengths> lengths = parse_batch(batch);
    if (!lengths) return fail(lengths.error());
    const Result<std::int64_t> layers =
        count_layers(setting.device, shape, bytes_of_layer(call_shape(spec, *lengths, shape.kv_heads, 1)));
    if (!layers) return fail("--batch " + batch + ": " + layers.error());
    const Result<std::string> text = spec_text(spec);
    if (!text) return fail(text.error());
    auto workload = std::make_unique<MadeUpWorkload>();
    calls::Rng rng(1);
    const std::int64_t together = has_layer_axis(spec) ? *layers : 1;
    for (std::int64_t made = 0; made < *layers; made += together)
        workload->add(setting, call_shape(spec, *lengths, shape.kv_heads, together), rng);
    if (auto planned = workload->add_engine(setting.machine); !planned) return fail(planned.error());
    workload->spec = *text;
    workload->batch = batch;
    workload->t1 = static_cast<kvjit_dtype>(spec.t1);
    workload->new_tokens = lengths->new_tokens();
    workload->layers = *layers;
    return workload;
}

Result<std::unique_ptr<Workload>> recorded_workload(const Machine& machine, const std::string& name) {
    const auto file = SafetensorsFile::open(name);
    if (!file) return fail(file.error());
    if (case_format(*file) != CaseFormat::kRecording)
        return fail(in_quotes(name) + " is no call that KVJIT_RECORD wrote; kvjit replay runs it");
    auto recording = read_recording(*file);
    if (!recording) return fail(recording.error());
    const Result<std::string> text = spec_text(recording->spec);
    if (!text) return fail(text.error());
    const Tensor& starts = recording->input("seqstarts");
    const kvjit_dtype t1 = recording->t1();
    const std::int64_t tokens = starts.integer(starts.size() - 1);
    auto workload = std::make_unique<RecordedWorkload>(*std::move(recording));
    if (auto planned = workload->add_engine(machine); !planned) return fail(planned.error());
    workload->spec = *text;
    workload->batch = std::filesystem::path(name).filename().string();
    workload->t1 = t1;
    workload->new_tokens = tokens;
    return workload;
}

}  // namespace kvjit::tool

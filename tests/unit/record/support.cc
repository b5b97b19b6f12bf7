#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "support.h"

#include <algorithm>
#include <filesystem>

namespace kvjit::test {
namespace {

Engine make_engine(Heard& heard, const std::string& record) {
    EngineOptions options;
    options.set_log(heard);
    options.record = record.c_str();
    return Engine::create(options).value();
}

}  // namespace

RecordingEngine::RecordingEngine(const std::string& filter)
    : engine_(make_engine(heard_, calls() + (filter.empty() ? "" : ":" + filter))) {}

std::vector<std::string> RecordingEngine::files() const {
    std::vector<std::string> files;
    if (std::filesystem::exists(calls())) files = files_in(calls());
    const auto number = [](const std::string& file) { return file.substr(file.find_last_of('/') + 1); };
    std::ranges::sort(files, {}, number);
    return files;
}

void RecordingEngine::run(const ApiCall& call, const PlanOptions& options, std::int64_t layer) {
    run(call, engine_.kernel(call.spec).value(), options, layer);
}

void RecordingEngine::run(const ApiCall& call, const Kernel& kernel, const PlanOptions& options, std::int64_t layer) {
    kernel.plan(call.batch, options).value().run(call.tensors, layer).value();
}

tool::Recording read(const std::string& path) {
    const auto file = tool::SafetensorsFile::open(path);
    REQUIRE_MESSAGE(file, file.error());
    auto call = tool::read_recording(*file);
    REQUIRE_MESSAGE(call, call.error());
    return *std::move(call);
}

ApiCall scattered_call(const std::string& spec, std::uint64_t seed, std::int64_t layers, std::int64_t spare) {
    CallShape shape{parse_spec(spec), {1, 3, 0, 1}, {37, 20, 5, 1}};
    if (shape.spec.op == KVJIT_OP_MULTI_HEAD_ATTENTION) shape.keys = {37, 20, 5, 2};
    shape.num_layers = layers;
    IndexArrays arrays(shape);
    Rng rng(seed);
    ApiCall call(shape);
    if (has_cache(call.spec)) {
        // Blocks at addresses have room for 64.
        call.place_tokens(&rng,
                          call.spec.cache_mode == KVJIT_BLOCK_POINTERS ? std::min<std::int64_t>(spare, 40) : spare);
        static_cast<CallTensors&>(call) = CallTensors(call, {call.seqstarts.back(), call.kvstarts.back()});
    }
    draw_inputs(call.tensors, rng);
    return call;
}

}  // namespace kvjit::test

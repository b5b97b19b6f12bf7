// The oracle itself is proven here: it must reproduce every recorded call. Those of
// pmx/ are PMX's own; those of rules/ were computed by tests/golden/record.py.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "call/oracle.h"
#include "compare.h"
#include "recorded_call.h"
#include "safetensors.h"

namespace kvjit::test {
namespace {

std::vector<std::string> golden_files() {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(KVJIT_GOLDEN_DIR)) {
        if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
    }
    std::ranges::sort(files);
    return files;
}

Strided strided(const tool::Tensor& tensor) {
    if (!tensor.present()) return {};
    const kvjit_tensor view = tensor.view();
    return {static_cast<std::byte*>(view.data),
            view.dtype,
            {view.shape, view.shape + view.rank},
            {view.strides, view.strides + view.rank}};
}

std::vector<std::int64_t> integers(const tool::Tensor& tensor) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < tensor.size(); ++i) values.push_back(static_cast<std::int64_t>(tensor.number(i)));
    return values;
}

Problem problem_of(const tool::RecordedCall& call) {
    Problem problem;
    problem.spec = call.spec;
    problem.num_heads = call.num_heads;
    problem.num_kv_heads = call.num_kv_heads;
    problem.num_layers = call.num_layers;
    problem.layer = call.layer_idx;
    problem.decoding_batches = call.decoding_batches;
    problem.softmax_scale = call.score.softmax_scale;
    problem.window_left = call.score.window_left;
    problem.window_right = call.score.window_right;
    problem.soft_cap = call.score.soft_cap;
    for (std::int64_t h = 0; h < call.sinks.size(); ++h)
        problem.sinks.push_back(static_cast<float>(call.sinks.number(h)));
    problem.seqstarts = call.seqstarts;
    problem.kvstarts = call.kvstarts;
    problem.start_pos = call.start_pos;
    problem.cachestarts = integers(call.cachestarts);
    problem.table_columns = call.cachestarts.shape().size() == 2 ? call.cachestarts.shape()[1] : 0;
    return problem;
}

template <class Values>
tool::Tensor float_tensor(const Values& values, const tool::Tensor& like) {
    tool::Tensor tensor(KVJIT_F32, {like.shape().begin(), like.shape().end()}, std::byte{0});
    for (std::size_t i = 0; i < values.size(); ++i) {
        write_element(tensor.bytes().data(), KVJIT_F32, static_cast<std::int64_t>(i), static_cast<double>(values[i]));
    }
    return tensor;
}

void check(const tool::Verdict& verdict) {
    CHECK_MESSAGE(verdict.pass, verdict.detail);
}

void check_call(const tool::RecordedCall& call) {
    const Problem problem = problem_of(call);
    const tool::Tensor cache = call.cache.clone();
    const tool::Tensor scale = call.scale.clone();
    Strided cache_view = strided(cache);
    Strided scale_view = strided(scale);
    oracle_store(problem, strided(call.current_key), strided(call.current_value), cache_view, scale_view);
    check(tool::compare_bytes("cache", cache, call.out_cache));
    if (scale.present()) check(tool::compare_exactly("scale", scale, call.out_scale));

    const Dense key = oracle_load(problem, 0, cache_view, scale_view);
    const Dense value = oracle_load(problem, 1, cache_view, scale_view);
    check(tool::compare_exactly("key", float_tensor(key, call.out_key), call.out_key));
    check(tool::compare_exactly("value", float_tensor(value, call.out_value), call.out_value));

    // The recordings are float64 computations rounded to float32 once: so must ours be, whatever t1 is.
    const Attended attended = oracle_attend(problem, strided(call.query), key, value, strided(call.attn_mask));
    check(tool::compare_closely("attn_output", float_tensor(attended.output, call.out_attn_output),
                                call.out_attn_output, 1e-6));
    check(tool::compare_closely("lse", float_tensor(attended.lse, call.out_lse), call.out_lse, 1e-6));
}

TEST_CASE("the oracle reproduces the recorded calls") {
    const auto files = golden_files();
    CHECK(files.size() >= 68);
    for (const std::string& file : files) {
        CAPTURE(file);
        const auto contents = tool::SafetensorsFile::open(file);
        REQUIRE_MESSAGE(contents.has_value(), contents.error());
        const auto call = tool::read_recorded_call(*contents);
        REQUIRE_MESSAGE(call.has_value(), call.error());
        check_call(*call);
    }
}

TEST_CASE("the oracle's halves round to nearest even and back") {
    for (int bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const double number = from_half(half);
        if (!std::isnan(number)) CHECK(to_half(number) == half);
    }
    CHECK(to_half(1 + 0x1p-11) == 0x3c00);
    CHECK(to_half(1 + 0x3p-11) == 0x3c02);
    CHECK(to_half(0x1p-25) == 0);
    CHECK(to_half(0x1.8p-25) == 1);
    CHECK(to_half(65519.99) == 0x7bff);
    CHECK(to_half(65520) == 0x7c00);
}

}  // namespace
}  // namespace kvjit::test

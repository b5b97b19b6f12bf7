// What engines count of runs, against plain loops over rows and keys.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <stdlib.h>

#include <string>
#include <thread>
#include <vector>

#include "call/call.h"
#include "kvjit/kvjit.hpp"
#include "support/rng.h"

namespace kvjit::test {
namespace {

struct Expected {
    std::int64_t bytes = 0, operations = 0;
};

/// Which rows see which keys, as the oracle has it.
oracle::Problem problem_of(const IndexArrays& call) {
    oracle::Problem problem;
    problem.spec = call.spec;
    problem.decoding_batches = call.batch.decoding_batches;
    problem.window_left = call.batch.window_left;
    problem.window_right = call.batch.window_right;
    problem.seqstarts = call.seqstarts;
    problem.kvstarts = call.kvstarts;
    return problem;
}

/// Pairs of a row and a key that it sees, and keys that some row sees.
struct Sight {
    std::int64_t pairs = 0, keys = 0;
};
Sight sight_of(const oracle::Problem& problem) {
    Sight sight;
    for (std::int64_t b = 0; b < problem.batch_size(); ++b) {
        for (std::int64_t key = 0; key < problem.kv_tokens(b); ++key) {
            std::int64_t rows = 0;
            for (std::int64_t i = 0; i < problem.new_tokens(b); ++i) rows += in_sight(problem, b, i, key) ? 1 : 0;
            sight.pairs += rows;
            sight.keys += rows != 0 ? 1 : 0;
        }
    }
    return sight;
}

/// A token's keys and values in one layer.
std::int64_t token_bytes(const IndexArrays& call) {
    const std::int64_t dim = call.spec.head_dim, heads = call.batch.num_kv_heads;
    const auto of = [](int dtype) { return static_cast<std::int64_t>(oracle::bytes_of(dtype)); };
    if (call.spec.quant_bit == 0) return 2 * heads * dim * of(oracle::code_row(call.spec).dtype);
    const std::int64_t scales = dim / call.spec.quant_group * of(oracle::scale_row(call.spec).dtype);
    return 2 * heads * (dim * call.spec.quant_bit / 8 + scales);
}

std::int64_t packed_bytes(const kvjit_tensors& tensors) {
    std::int64_t bytes = 0;
    for (const auto member :
         {&kvjit_tensors::query, &kvjit_tensors::current_key, &kvjit_tensors::current_value, &kvjit_tensors::key,
          &kvjit_tensors::value, &kvjit_tensors::attn_mask, &kvjit_tensors::sinks, &kvjit_tensors::attn_output,
          &kvjit_tensors::lse, &kvjit_tensors::partial_output, &kvjit_tensors::partial_lse}) {
        bytes += static_cast<std::int64_t>(bytes_of(tensors.*member).size());
    }
    return bytes;
}

Expected expected(const ApiCall& call) {
    const Sight sight = sight_of(problem_of(call));
    const std::int64_t new_tokens = call.seqstarts.back(), token = token_bytes(call);
    const std::int64_t dense = packed_bytes(call.tensors);
    switch (call.spec.op) {
        case KVJIT_OP_KEY_VALUE_CACHE:
            return {dense + (new_tokens + call.kvstarts.back()) * token, 0};
        case KVJIT_OP_MERGE:
            return {dense, 0};
        default:
            break;
    }
    const std::int64_t cached = call.spec.op == KVJIT_OP_MULTI_HEAD_ATTENTION ? 0 : (new_tokens + sight.keys) * token;
    return {dense + cached, 4 * call.spec.head_dim * call.batch.num_heads * sight.pairs};
}

EngineOptions counting() {
    EngineOptions options;
    options.count_runs = 1;
    return options;
}

Result<void> run(const Engine& engine, const ApiCall& call, int times = 1) {
    const auto kernel = engine.kernel(call.spec);
    if (!kernel) return kernel.error();
    PlanOptions options;
    options.num_threads = 1;
    auto plan = kernel->plan(call.batch, options);
    if (!plan) return plan.error();
    Result<void> done;
    for (int i = 0; done && i < times; ++i) done = plan->run(call.tensors);
    return done;
}

ApiCall ragged_call(const std::string& spec, std::uint64_t seed) {
    Rng rng(seed);
    CallShape shape{parse_spec(spec), {}, {}};
    for (std::int64_t b = rng.between(1, 5); b > 0; --b) {
        shape.tokens.push_back(rng.chance(0.3) ? 1 : rng.between(0, 12));
        shape.keys.push_back(shape.tokens.back() + (rng.chance(0.3) ? 0 : rng.between(0, 300)));
    }
    ApiCall call(shape);
    if (rng.chance(0.5)) call.batch.decoding_batches = rng.between(0, call.batch.batch_size);
    if (call.spec.has_window) {
        call.batch.window_left = rng.chance(0.3) ? -1 : rng.between(0, 40);
        call.batch.window_right = rng.chance(0.3) ? -1 : rng.between(0, 6);
    }
    if (call.spec.is_alibi) {
        call.slopes.assign(static_cast<std::size_t>(call.batch.num_heads), 0.25F);
        call.bind();
    }
    draw_inputs(call.tensors, rng);
    return call;
}

TEST_CASE("bytes and operations are those of plain loops, for any batch") {
    const char* const specs[] = {
        "op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f32",
        "op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f32,is_causal=0,cache_mode=page_table,page_size=16",
        "op=MultiHeadCacheAttention,head_dim=64,group=2,has_window=1,quant_bit=8",
        "op=MultiHeadCacheAttention,head_dim=64,group=2,has_window=1,is_causal=0,quant_bit=4,quant_group=16",
        "op=MultiHeadCacheAttention,head_dim=64,is_alibi=1,t1=f32",
        "op=MultiHeadAttention,head_dim=64,group=4,t1=f32,attn_mask=2",
        "op=KeyValueCache,head_dim=64,quant_bit=8,t1=f32",
        "op=Merge,head_dim=64,t1=f32",
    };
    for (const char* spec : specs) {
        for (std::uint64_t seed = 1; seed <= 12; ++seed) {
            const Engine engine = Engine::create(counting()).value();
            const ApiCall call = ragged_call(spec, seed);
            const auto done = run(engine, call);
            INFO("spec " << std::string(spec) << ", seed " << seed);
            REQUIRE_MESSAGE(done, std::string(done.error().message()));
            const std::vector<RunStats> all = engine.run_stats().value();
            REQUIRE(all.size() == 1);
            CHECK(all[0].bytes == expected(call).bytes);
            CHECK(all[0].operations == expected(call).operations);
            CHECK(all[0].runs == 1);
            CHECK(all[0].seconds > 0);
        }
    }
}

TEST_CASE("one of two loaded tensors reads half; a plan that stores nothing writes nothing") {
    ApiCall call = ragged_call("op=KeyValueCache,head_dim=64,quant_bit=8,t1=f32", 5);
    const std::int64_t both = expected(call).bytes;
    const std::int64_t value = static_cast<std::int64_t>(bytes_of(call.tensors.value).size());
    call.tensors.value = Tensor();
    const Engine engine = Engine::create(counting()).value();
    run(engine, call).value();
    CHECK(engine.run_stats().value().at(0).bytes == both - value - call.kvstarts.back() * token_bytes(call) / 2);

    ApiCall reader = ragged_call("op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f32", 5);
    const std::int64_t stored = static_cast<std::int64_t>(bytes_of(reader.tensors.current_key).size() +
                                                          bytes_of(reader.tensors.current_value).size());
    const std::int64_t all = expected(reader).bytes;
    reader.tensors.current_key = reader.tensors.current_value = Tensor();
    PlanOptions options;
    options.stores_nothing = 1;
    const Engine other = Engine::create(counting()).value();
    other.kernel(reader.spec).value().plan(reader.batch, options).value().run(reader.tensors).value();
    CHECK(other.run_stats().value().at(0).bytes == all - stored - reader.seqstarts.back() * token_bytes(reader));
}

TEST_CASE(
    "kernels stand in the order of their time, with spec and target as commands take them; refused runs count not") {
    const Engine engine = Engine::create(counting()).value();
    const ApiCall small = ragged_call("op=Merge,head_dim=64,t1=f32", 1);
    ApiCall large(even_shape("op=MultiHeadAttention,head_dim=64,group=4,t1=f32", 2, 200, 200));
    run(engine, small).value();
    run(engine, large, 3).value();
    kvjit_tensors wrong = large.tensors;
    wrong.query.shape[2] = 32;
    CHECK(!engine.kernel(large.spec).value().plan(large.batch).value().run(wrong));
    const std::vector<RunStats> all = engine.run_stats().value();
    REQUIRE(all.size() == 2);
    CHECK(all[0].spec == "op=MultiHeadAttention,head_dim=64,group=4,t1=f32");
    CHECK(Target::cpu(all[0].target).value().text() == Target::host().value().text());
    CHECK(all[0].runs == 3);
    CHECK(all[1].runs == 1);
    CHECK(all[0].seconds >= all[1].seconds);
}

TEST_CASE("threads' runs are all counted") {
    const Engine engine = Engine::create(counting()).value();
    constexpr int kThreads = 4, kRuns = 500;
    std::vector<ApiCall> calls;
    for (int i = 0; i < kThreads; ++i) calls.push_back(ragged_call("op=Merge,head_dim=64,t1=f32", 3));
    std::vector<std::thread> threads;
    for (const ApiCall& call : calls) threads.emplace_back([&] { run(engine, call, kRuns).value(); });
    for (std::thread& thread : threads) thread.join();
    const RunStats all = engine.run_stats().value().at(0);
    CHECK(all.runs == kThreads * kRuns);
    CHECK(all.bytes == kThreads * kRuns * expected(calls[0]).bytes);
}

TEST_CASE("nothing is counted unless an option or the variable says so") {
    const ApiCall call = ragged_call("op=Merge,head_dim=64,t1=f32", 1);
    const auto rows = [&](std::int64_t option, const char* variable) {
        setenv("KVJIT_COUNT_RUNS", variable, 1);
        EngineOptions options;
        options.count_runs = option;
        const Engine engine = Engine::create(options).value();
        unsetenv("KVJIT_COUNT_RUNS");
        run(engine, call).value();
        return engine.run_stats().value().size();
    };
    CHECK(rows(-1, "") == 0);
    CHECK(rows(-1, "0") == 0);
    CHECK(rows(-1, "1") == 1);
    CHECK(rows(0, "1") == 0);
    CHECK(rows(1, "0") == 1);
}

TEST_CASE("a released engine logs its counts") {
    std::vector<std::string> lines;
    const auto log = [&lines](kvjit_log_level, const char* message) { lines.emplace_back(message); };
    EngineOptions options = counting();
    options.set_log(log);
    {
        const Engine engine = Engine::create(options).value();
        run(engine, ragged_call("op=Merge,head_dim=64,t1=f32", 1), 7).value();
    }
    REQUIRE(!lines.empty());
    CHECK_MESSAGE(lines.back().starts_with("counted spec=\"op=Merge,head_dim=64,t1=f32\" target="), lines.back());
    CHECK_MESSAGE(lines.back().find(" runs=7 ms=") != std::string::npos, lines.back());
}

}  // namespace
}  // namespace kvjit::test

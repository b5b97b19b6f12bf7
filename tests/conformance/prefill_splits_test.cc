// Few new tokens over many keys: a GPU's prefill splits the keys among blocks, and the last one merges their parts.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "call/call.h"
#include "conformance/judge.h"
#include "conformance/options.h"
#include "conformance/run_call.h"
#include "kvjit/kvjit.hpp"
#include "support/guarded_buffer.h"
#include "support/rng.h"

namespace kvjit::test {
namespace {

/// What the oracle takes, for one layer.
Problem problem_of(const ApiCall& call) {
    Problem problem;
    problem.spec = call.spec;
    problem.num_heads = call.batch.num_heads;
    problem.num_kv_heads = call.batch.num_kv_heads;
    problem.window_left = call.batch.window_left;
    problem.soft_cap = call.batch.soft_cap;
    problem.seqstarts = call.seqstarts;
    problem.kvstarts = call.kvstarts;
    problem.start_pos = call.start_pos;
    problem.cachestarts = call.table;
    problem.table_columns = has_pages(call.spec) ? call.batch.cachestarts.shape[1] : 0;
    problem.slopes = call.slopes;
    return problem;
}

Strided strided(const kvjit_tensor& tensor) {
    return {static_cast<std::byte*>(tensor.data), tensor.dtype, Numbers(tensor.shape, tensor.shape + tensor.rank),
            Numbers(tensor.strides, tensor.strides + tensor.rank)};
}

std::vector<double> numbers_in(const kvjit_tensor& tensor) {
    std::vector<double> all;
    const auto bytes = bytes_of(tensor);
    for (std::size_t i = 0; i < bytes.size() / bytes_of(tensor.dtype); ++i)
        all.push_back(read_element(bytes.data(), tensor.dtype, static_cast<std::int64_t>(i)));
    return all;
}

/// A call over one kv head. `window`: window_left, if the spec has one.
ApiCall call_of(CallShape shape, std::int64_t window, Rng& rng) {
    shape.num_kv_heads = 1;
    ApiCall call(shape);
    call.place_tokens(&rng);
    if (call.spec.has_window) call.batch.window_left = window;
    if (call.spec.is_alibi) call.slopes = {0.5F, 0.25F, 0.01F, 0.001F};
    if (call.spec.has_soft_cap) call.batch.soft_cap = 2;
    call.bind();
    draw_inputs(call.tensors, rng);
    return call;
}

/// Sequences that prefill and one that decodes, of which a few keys to more than 3000 are seen; so few tiles of rows
/// that they are split on any GPU, the emulated one included. With an even seed one sequence has two tiles.
ApiCall long_call(const std::string& spec, std::uint64_t seed) {
    Rng rng(seed);
    CallShape shape{parse_spec("op=MultiHeadCacheAttention,group=4," + spec),
                    seed % 2 == 0 ? calls::Numbers{33, 1, 5} : calls::Numbers{20, 1, 5, 5},
                    {rng.between(2900, 3300), 700, rng.between(600, 1200)}};
    if (seed % 2 != 0) shape.keys.push_back(5);
    const std::int64_t window = rng.between(900, 1500);
    return call_of(std::move(shape), window, rng);
}

/// Copies arrays to pages that a GPU reaches.
Place place_in(std::deque<GuardedBuffer>& pages) {
    return [&pages](const void* data, std::size_t bytes) {
        GuardedBuffer& made = pages.emplace_back(bytes, Guard::kAfter);
        std::memcpy(made.data(), data, bytes);
        return static_cast<const void*>(made.data());
    };
}

/// Runs a plan and waits for it.
void run(Plan& plan, const ApiCall& call) {
    plan.run(call.tensors).value();
    plan.synchronize().value();
}

/// Of a prefill's and of a decode's keys, where it is a GPU that splits them.
PlanOptions fixed_splits(std::int64_t keys) {
    PlanOptions how;
    if (options().on_cuda()) how.split_keys = how.prefill_split_keys = keys;
    return how;
}

/// Returns what the call's plan says of itself.
std::string expect_right(ApiCall call, PlanOptions how = {}) {
    const kvjit_batch on_host =
        call.batch;                       // of arrays that stay valid: bind() copies them, and replaces none of 64 bits
    std::deque<GuardedBuffer> reachable;  // where a GPU finds the arrays
    if (options().on_gpu()) call.bind(place_in(reachable));
    const auto engine = Engine::create().value();
    if (options().on_cuda()) how.host_batch = &on_host;
    auto plan = engine.kernel(call.spec, chosen_target()).value().plan(call.batch, how).value();
    run(plan, call);
    const std::vector<std::byte> first = call.snapshot();

    const Problem problem = problem_of(call);
    const CacheMemory cache(strided(call.tensors.cache)), scale(strided(call.tensors.scale));
    const Attended expected = oracle_attend(problem, strided(call.tensors.query), oracle_load(problem, 0, cache, scale),
                                            oracle_load(problem, 1, cache, scale), {});
    const double tolerance = tolerance_of(call.spec.t1);
    CHECK(compare_close("attn_output", numbers_in(call.tensors.attn_output), expected.output, tolerance) == "");
    CHECK(compare_close("lse", numbers_in(call.tensors.lse), expected.lse, tolerance, 1) == "");

    // The counters are as they were, and bits don't depend on which block is the last.
    run(plan, call);
    CHECK(call.snapshot() == first);
    return plan.describe();
}

void expect_split(const std::string& spec, std::uint64_t seed) {
    INFO("spec " << spec << ", seed " << seed);
    const std::string plan = expect_right(long_call(spec, seed));
    if (options().on_cuda()) CHECK_MESSAGE(plan.find("prefill splits: 1\n") == std::string::npos, plan);
}

TEST_CASE("few rows see many keys") {
    expect_split("head_dim=64,cache_mode=page_table,page_size=16", 1);
    expect_split("head_dim=64,t1=f32,layout=L2HTD", 2);
    expect_split("head_dim=64,quant_bit=8,cache_mode=token_table", 3);
    expect_split("head_dim=64,is_alibi=1,t1=bf16", 4);
    expect_split("head_dim=64,has_window=1,cache_mode=page_table,page_size=64,quant_bit=4,quant_group=32", 5);
    expect_split("head_dim=64,has_window=1,t1=f32", 6);
}

// Of 16-bit rows, also those that warpgroups have in two or three parts, or in tiles of fewer keys.
TEST_CASE("few rows of each length that warpgroups take see many keys") {
    expect_split("head_dim=128,cache_mode=page_table,page_size=16", 1);
    expect_split("head_dim=128,has_soft_cap=1,t1=bf16", 2);
    expect_split("head_dim=192,has_window=1", 1);
    expect_split("head_dim=256,t1=bf16,cache_mode=page_table,page_size=64", 2);
}

// Two warps share such rows: an even or an odd number of 16 elements, the last of them whole or not.
TEST_CASE("few rows of many elements see many keys") {
    expect_split("head_dim=144,has_window=1,quant_bit=8,quant_group=8", 2);
    expect_split("head_dim=136,cache_mode=page_table,page_size=16", 1);
    expect_split("head_dim=200,is_alibi=1,t1=bf16", 3);
    expect_split("head_dim=256,cache_mode=page_table,page_size=64,quant_bit=4,quant_group=32", 4);
    // Decode has room for one stage of such rows on most GPUs, and its scales of 2 bytes are held back for a turn.
    expect_split("head_dim=256,quant_bit=8,quant_group=256,t3=f16,cache_mode=page_table,page_size=16", 5);
}

// Tiles of rows and tiles of keys begin at different tokens: a tile's last row sees keys that its first one does not,
// and with a window the first row sees some that the last one does not.
TEST_CASE("the rows of a tile see each their own keys") {
    for (const std::string rows :
         {"head_dim=64", "head_dim=64,t1=f32", "head_dim=128,quant_bit=8,cache_mode=page_table,page_size=16"}) {
        CAPTURE(rows);
        const std::string spec = "op=MultiHeadCacheAttention,group=1," + rows;
        Rng rng(7);
        expect_right(call_of({parse_spec(spec), {200}, {237}}, 0, rng));
        expect_right(call_of({parse_spec(spec + ",has_window=1"), {200}, {500}}, 200, rng));
    }
}

// Of kernels that the test above has, too: these take their time.
TEST_CASE("splits of prefills that are fixed are right") {
    for (const std::string rows :
         {"head_dim=64", "head_dim=64,t1=f32", "head_dim=128,quant_bit=8,cache_mode=page_table,page_size=16"}) {
        for (const std::int64_t keys : {64, 192}) {
            CAPTURE(rows);
            CAPTURE(keys);
            const std::string spec = "op=MultiHeadCacheAttention,group=1," + rows;
            Rng rng(8);
            for (const std::string& plan :
                 {expect_right(call_of({parse_spec(spec), {200}, {237}}, 0, rng), fixed_splits(keys)),
                  expect_right(call_of({parse_spec(spec + ",has_window=1"), {200}, {500}}, 200, rng),
                               fixed_splits(keys))}) {
                if (!options().on_cuda()) continue;
                const std::string each = "keys of a prefill's split, at most: " + std::to_string(keys) + "\n";
                CHECK_MESSAGE(plan.find(each) != std::string::npos, plan);
                CHECK_MESSAGE(plan.find("prefill splits: 1\n") == std::string::npos, plan);
            }
        }
    }
}

/// Output and lse of the call's first sequence.
std::vector<std::byte> first_rows(const ApiCall& call) {
    std::vector<std::byte> rows;
    for (const kvjit_tensor& tensor : {call.tensors.attn_output, call.tensors.lse}) {
        const auto bytes = bytes_of(tensor);
        const std::size_t of_token = bytes.size() / static_cast<std::size_t>(tensor.shape[0]);
        const auto first = bytes.first(static_cast<std::size_t>(call.tokens(0)) * of_token);
        rows.insert(rows.end(), first.begin(), first.end());
    }
    return rows;
}

/// Runs the call, and its first sequence alone, in plans whose bounds are those of their own lengths.
void expect_same_alone(ApiCall call, PlanOptions how) {
    kvjit_batch on_host = call.batch;
    std::deque<GuardedBuffer> reachable;
    if (options().on_gpu()) call.bind(place_in(reachable));
    const auto kernel = Engine::create().value().kernel(call.spec, chosen_target()).value();
    const auto attend = [&] {
        for (const kvjit_tensor& tensor : {call.tensors.attn_output, call.tensors.lse})
            std::ranges::fill(bytes_of(tensor), std::byte{0xff});
        if (options().on_cuda()) how.host_batch = &on_host;
        auto plan = kernel.plan(call.batch, how).value();
        run(plan, call);
        return first_rows(call);
    };
    const std::vector<std::byte> beside = attend();
    for (kvjit_batch* batch : {&call.batch, &on_host}) batch->batch_size = batch->cachestarts.shape[0] = 1;
    CHECK(attend() == beside);
}

TEST_CASE("with fixed splits a prefill has the same bits alone and beside others") {
    for (const std::string rows :
         {"head_dim=64", "head_dim=64,t1=f32", "head_dim=128,quant_bit=8,cache_mode=page_table,page_size=16"}) {
        for (const std::string window : {"", ",has_window=1"}) {
            CAPTURE(rows);
            CAPTURE(window);
            Rng rng(9);
            const kvjit_spec spec = parse_spec("op=MultiHeadCacheAttention,group=1," + rows + window);
            expect_same_alone(call_of({spec, {150, 1, 20}, {700, 90, 1300}}, 200, rng), fixed_splits(192));
        }
    }
}

}  // namespace
}  // namespace kvjit::test

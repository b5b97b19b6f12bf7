// Options and tensors that only CUDA targets refuse, or only CPU targets.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "call/call.h"
#include "kvjit/kvjit.hpp"

namespace kvjit::test {
namespace {

/// One new token of one sequence, stored at slot 2 of 8.
struct Store : ApiCall {
    Store() : ApiCall({parse_spec("op=KeyValueCache,head_dim=16,t1=f32"), {1}, {1}, 1}, room_for_8()) {
        table[0] = 2;
        batch.max_tokens = tensors.cache.shape[0] = 8;
        tensors.key = tensors.value = Tensor();
        std::ranges::fill(cache(), 0.0f);
    }
    std::span<float> cache() const { return {static_cast<float*>(tensors.cache.data), 8 * 2 * 16 + 16}; }
    bool unchanged() const {
        return std::ranges::all_of(cache(), [](float number) { return number == 0; });
    }

private:
    /// For slots that a test spreads, too.
    static Allocate room_for_8() {
        return [memory = guarded_memory()](std::size_t bytes) { return memory(bytes + 8 * 2 * 16 * sizeof(float)); };
    }
};

Kernel kernel_for(const Target& target, const std::string& spec = "op=KeyValueCache,head_dim=16,t1=f32") {
    static const Engine engine = *Engine::create();
    return *engine.kernel(*KernelSpec::parse(spec), target);
}

void expect_refused(const Result<Plan>& plan, kvjit_status status, const std::string& argument) {
    REQUIRE(!plan.has_value());
    CHECK(plan.error().status() == status);
    CHECK(plan.error().argument() == argument);
    CHECK(std::string(plan.error().message()).find(argument) != std::string::npos);
}

TEST_CASE("a CPU plan takes no option of CUDA's, a CUDA plan none of the CPU's") {
    Store store;
    kvjit_batch batch = store.batch;
    const Kernel cpu = kernel_for(*Target::host());
    const Kernel cuda = kernel_for(*Target::cuda_emulated());
    kvjit_executor executor;
    kvjit_executor_init(&executor);
    executor.concurrency = 1;
    executor.run = [](void*, void (*)(void*, std::int64_t), void*, std::int64_t) {};
    PlanOptions stream, mirror, split, prefill, threads, spinner, runner;
    stream.stream = &store;
    mirror.host_batch = &batch;
    split.split_keys = 64;
    prefill.prefill_split_keys = 64;
    threads.num_threads = 2;
    spinner.spin_us = 0;
    runner.executor = &executor;
    expect_refused(cpu.plan(batch, stream), KVJIT_BAD_ARGUMENT, "stream");
    expect_refused(cpu.plan(batch, mirror), KVJIT_BAD_ARGUMENT, "host_batch");
    expect_refused(cpu.plan(batch, split), KVJIT_BAD_ARGUMENT, "split_keys");
    expect_refused(cpu.plan(batch, prefill), KVJIT_BAD_ARGUMENT, "prefill_split_keys");
    expect_refused(cuda.plan(batch, threads), KVJIT_BAD_ARGUMENT, "num_threads");
    expect_refused(cuda.plan(batch, spinner), KVJIT_BAD_ARGUMENT, "spin_us");
    expect_refused(cuda.plan(batch, runner), KVJIT_BAD_ARGUMENT, "executor");
    for (const std::int64_t keys :
         {std::int64_t{-64}, std::int64_t{1}, std::int64_t{63}, std::int64_t{100}, std::int64_t{1} << 31}) {
        split.split_keys = prefill.prefill_split_keys = keys;
        expect_refused(cuda.plan(batch, split), KVJIT_BAD_ARGUMENT, "split_keys");
        expect_refused(cuda.plan(batch, prefill), KVJIT_BAD_ARGUMENT, "prefill_split_keys");
    }
    for (const std::int64_t keys : {std::int64_t{64}, std::int64_t{1} << 30}) {
        split.split_keys = prefill.prefill_split_keys = keys;
        CHECK(cuda.plan(batch, split).has_value());
        CHECK(cuda.plan(batch, prefill).has_value());
    }
}

TEST_CASE("a mirror's new tokens have the CPU's limit") {
    Store store;
    const kvjit_batch batch = store.batch;
    kvjit_batch mirror = batch;
    const std::vector<std::int64_t> garbage = {0, std::int64_t{1} << 36};
    mirror.seqstarts = garbage.data();
    PlanOptions options;
    options.host_batch = &mirror;
    for (const auto level : {KVJIT_CHECK_FULL, KVJIT_CHECK_NONE}) {
        options.check_level = level;
        const Result<Plan> plan = kernel_for(*Target::cuda_emulated()).plan(batch, options);
        expect_refused(plan, KVJIT_BAD_INDEX, "seqstarts");
        CHECK(plan.error().value() == garbage[1]);
        CHECK(plan.error().limit() == std::int64_t{1} << 30);
        CHECK(plan.error().sequence() == 0);
    }
}

TEST_CASE("a mirror has the batch's arrays: what it lacks nobody would check") {
    Store store;
    const kvjit_batch batch = store.batch;
    const std::vector<std::int64_t> many(64);
    const auto refused = [&](const char* argument, const kvjit_batch& given, const kvjit_batch& mirror) {
        CAPTURE(argument);
        PlanOptions options;
        options.host_batch = &mirror;
        expect_refused(kernel_for(*Target::cuda_emulated()).plan(given, options), KVJIT_BAD_ARGUMENT, argument);
    };
    kvjit_batch slots = batch, lens = batch, longer = batch;
    slots.store_slots = Tensor(many.data(), KVJIT_I64, {64});
    lens.kvlens = lens.kvstarts, lens.kvstarts = nullptr;
    longer.cachestarts = Tensor(many.data(), KVJIT_I64, {batch.cachestarts.shape[0] + 1});
    refused("host_batch.store_slots.rank", slots, batch);
    refused("host_batch.store_slots.rank", batch, slots);
    refused("host_batch.kvstarts", batch, lens);
    refused("host_batch.kvstarts", lens, batch);
    refused("host_batch.cachestarts.shape[0]", batch, longer);
}

TEST_CASE("CUDA takes tensors at multiples of 16 bytes, with rows that keep to it") {
    Store store;
    const kvjit_batch batch = store.batch;
    Plan plan = *kernel_for(*Target::cuda_emulated()).plan(batch);
    kvjit_tensors shifted = store.tensors;
    shifted.cache.data = store.cache().data() + 1;
    const Result<void> base = plan.run(shifted);
    REQUIRE(!base.has_value());
    CHECK(base.error().status() == KVJIT_BAD_ARGUMENT);
    CHECK(std::string(base.error().argument()) == "cache");
    CHECK(base.error().value() == 4);
    CHECK(base.error().limit() == 16);
    kvjit_tensors spread = store.tensors;
    spread.cache.strides[2] = 17;
    spread.cache.strides[0] = spread.cache.strides[1] = 34;
    spread.cache.shape[0] = 7;
    const Result<void> rows = plan.run(spread);
    CHECK(!rows.has_value());
    CHECK(store.unchanged());
    CHECK(plan.run(store.tensors).has_value());
    CHECK(plan.synchronize().has_value());
    CHECK(!store.unchanged());
}

TEST_CASE("of rows in pieces it is these that keep to multiples") {
    Store store;
    const kvjit_batch batch = store.batch;
    const auto run = [&](const char* layout, const Tensor& cache) {
        const std::string spec = "op=KeyValueCache,head_dim=16,t1=f32,layout=" + std::string(layout);
        Plan plan = *kernel_for(*Target::cuda_emulated(), spec).plan(batch);
        kvjit_tensors tensors = store.tensors;
        tensors.cache = cache;
        Result<void> result = plan.run(tensors);
        CHECK(plan.synchronize().has_value());
        return result;
    };
    Tensor pieces(store.cache().data(), KVJIT_F32, {8, 2, 1, 2, 8});
    pieces.strides[0] = 34;
    const Result<void> refused = run("T2HDd8", pieces);
    REQUIRE(!refused.has_value());
    CHECK(std::string(refused.error().argument()) == "cache.strides[0]");
    CHECK(refused.error().limit() == 4);
    CHECK(store.unchanged());
    pieces.strides[0] = 32;
    CHECK(run("T2HDd8", pieces).has_value());
    Tensor elements(store.cache().data(), KVJIT_F32, {16, 8, 2, 1});
    elements.strides[0] = 17;
    CHECK(run("DT2H", elements).has_value());
}

TEST_CASE("head_dim above 256 is refused for CUDA before anything is compiled") {
    Engine engine = *Engine::create();
    const KernelSpec wide = *KernelSpec::parse("op=MultiHeadAttention,head_dim=512");
    CHECK(engine.kernel(wide).has_value());
    const Result<Kernel> refused = engine.kernel(wide, *Target::cuda("sm_90a"));
    REQUIRE(!refused.has_value());
    CHECK(refused.error().status() == KVJIT_BAD_SPEC);
    CHECK(std::string(refused.error().argument()) == "head_dim");
    CHECK(refused.error().limit() == 256);
    CHECK(engine.stats().compiles == 0);
}

const char kAttention[] = "op=MultiHeadCacheAttention,head_dim=16,group=1,t1=f32";

/// A batch of one sequence with up to 2^30 keys, and of one head.
kvjit_batch long_batch(const Store& store, std::int64_t max_seqlen) {
    kvjit_batch batch = store.batch;
    batch.num_heads = 1;
    batch.max_seqlen = max_seqlen;
    batch.max_kvlen = std::int64_t{1} << 30;
    return batch;
}

/// A decode of up to 2^30 keys in splits of 64.
Result<Plan> plan_of_long_decode(const std::string& fields, std::int64_t window_left = -1) {
    Store store;
    kvjit_batch batch = long_batch(store, 1);
    batch.window_left = window_left;
    PlanOptions options;
    options.split_keys = 64;
    return kernel_for(*Target::cuda_emulated(), kAttention + fields).plan(batch, options);
}

TEST_CASE("splits that no grid has room for are refused before anything runs") {
    const Result<Plan> plan = plan_of_long_decode("");
    expect_refused(plan, KVJIT_BAD_ARGUMENT, "split_keys");
    CHECK(plan.error().limit() == 65535);
}

TEST_CASE("so are those of prefills, of all heads") {
    Store store;
    kvjit_batch batch = long_batch(store, 100);
    batch.num_heads = batch.num_kv_heads = 2;
    batch.max_kvlen = 32768 * 64;
    PlanOptions options;
    options.prefill_split_keys = 64;
    const Kernel kernel = kernel_for(*Target::cuda_emulated(), kAttention);
    const Result<Plan> plan = kernel.plan(batch, options);
    expect_refused(plan, KVJIT_BAD_ARGUMENT, "prefill_split_keys");
    CHECK(plan.error().value() == 65536);
    CHECK(plan.error().limit() == 65535);
    batch.max_kvlen -= 64;
    CHECK(kernel.plan(batch, options).has_value());
    batch.num_heads = batch.num_kv_heads = 65536;  // too many whole
    expect_refused(kernel.plan(batch, options), KVJIT_BAD_ARGUMENT, "num_kv_heads");
}

TEST_CASE("parts of splits that no memory holds are told by a number of bytes that there is") {
    Store store;
    kvjit_batch batch = long_batch(store, std::int64_t{1} << 30);
    batch.num_heads = 256;
    batch.max_kvlen = 65535 * 64;
    std::vector<std::uint64_t> memory(64);
    PlanOptions options;
    options.prefill_split_keys = 64;
    options.workspace = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
    options.workspace_bytes = 256;
    const std::string spec = "op=MultiHeadCacheAttention,head_dim=128,group=256,t1=f32";
    const Result<Plan> plan = kernel_for(*Target::cuda_emulated(), spec).plan(batch, options);
    expect_refused(plan, KVJIT_BAD_ARGUMENT, "workspace_bytes");
    CHECK(plan.error().limit() >= std::int64_t{1} << 60);
}

/// What the plan says of a prefill of 100 tokens in splits of 64 keys, under a window of 127 keys before each row.
std::string windowed_prefill(const std::string& fields, std::int64_t window_right) {
    Store store;
    kvjit_batch batch = long_batch(store, 100);
    batch.window_left = 127;
    batch.window_right = window_right;
    PlanOptions options;
    options.prefill_split_keys = 64;
    const auto plan =
        kernel_for(*Target::cuda_emulated(), kAttention + (",has_window=1" + fields)).plan(batch, options);
    REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
    return plan->describe();
}

TEST_CASE("a window's prefill has the splits of its window, however many keys there may be") {
    const auto has = [](const std::string& plan, const std::string& line) {
        CHECK_MESSAGE(plan.find(line + "\n") != std::string::npos, plan);
    };
    // Tiles of 64 rows see 127 keys before the first, and up to 63 keys are before those in the first split.
    has(windowed_prefill(",is_causal=1", 0), "prefill splits: 4");
    has(windowed_prefill(",is_causal=1", -1), "prefill splits: 4");
    // After the last row are 40 keys, or as many as there are new tokens.
    has(windowed_prefill(",is_causal=0", 40), "prefill splits: 5");
    has(windowed_prefill(",is_causal=0", -1), "prefill splits: 6");
    has(windowed_prefill(",is_causal=0", -1), "keys of a prefill's split, at most: 64");
}

TEST_CASE("where decode's splits are fixed and prefill's not, prefills are whole") {
    Store store;
    kvjit_batch batch = long_batch(store, 100);
    batch.max_kvlen = 6400;
    const Kernel kernel = kernel_for(*Target::cuda_emulated(), kAttention);
    PlanOptions options;
    CHECK(kernel.plan(batch, options)->describe().find("prefill splits: 1\n") == std::string::npos);
    options.split_keys = 64;
    const std::string whole = kernel.plan(batch, options)->describe();
    CHECK(whole.find("decode splits: 100\n") != std::string::npos);
    CHECK(whole.find("prefill splits: 1\n") != std::string::npos);
    CHECK(whole.find("keys of a prefill's split, at most: 6400\n") != std::string::npos);
    options.prefill_split_keys = 640;
    const std::string split = kernel.plan(batch, options)->describe();
    CHECK(split.find("decode splits: 100\n") != std::string::npos);
    CHECK(split.find("prefill splits: 10\n") != std::string::npos);
}

TEST_CASE("rows that no grid has room for are refused before anything runs") {
    // Tokens of stride 0 take no memory, and their number times the group may pass 64 bits.
    const std::string spec = "op=MultiHeadAttention,head_dim=16,group=8,t1=f32";
    ApiCall call({parse_spec(spec), {40}, {40}, 1});
    call.batch.max_seqlen = call.batch.max_kvlen = 40;
    Plan plan = kernel_for(*Target::cuda_emulated(), spec).plan(call.batch).value();
    const std::vector<std::byte> before = call.snapshot();
    for (const int bits : {40, 59, 60, 61, 62}) {
        CAPTURE(bits);
        kvjit_tensors tensors = call.tensors;
        tensors.query.strides[0] = 0;
        tensors.query.shape[0] = std::int64_t{1} << bits;
        const Result<void> refused = plan.run(tensors);
        REQUIRE(!refused.has_value());
        CHECK(refused.error().status() == KVJIT_BAD_ARGUMENT);
        CHECK(std::string(refused.error().argument()) == "rows");
        CHECK(refused.error().limit() == 0x7fffffff);
    }
    CHECK(call.snapshot() == before);
    CHECK(plan.run(call.tensors).has_value());
    CHECK(plan.synchronize().has_value());
}

TEST_CASE("a window's decode has the splits of its window, however many keys there may be") {
    const Result<Plan> plan = plan_of_long_decode(",has_window=1", 127);
    REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
    // 16 tokens that see 127 keys each before their own, and up to 63 keys before those in the first split.
    CHECK(plan->describe().find("decode splits: 4\n") != std::string::npos);
}

TEST_CASE("a workspace of the caller's is used, and refused where it is too small") {
    Store store;
    const kvjit_batch batch = store.batch;
    const Kernel kernel = kernel_for(*Target::cuda_emulated());
    const std::size_t needed = kernel.plan(batch)->workspace_bytes();
    REQUIRE(needed > 0);
    std::vector<std::uint64_t> memory(needed / 8 + 16);
    PlanOptions options;
    options.workspace = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
    options.workspace_bytes = needed - 1;
    const Result<Plan> refused = kernel.plan(batch, options);
    expect_refused(refused, KVJIT_BAD_ARGUMENT, "workspace_bytes");
    CHECK(refused.error().limit() == static_cast<std::int64_t>(needed));
    options.workspace_bytes = needed;
    Plan plan = *kernel.plan(batch, options);
    CHECK(plan.run(store.tensors).has_value());
    CHECK(plan.synchronize().has_value());
}

TEST_CASE("targets that this machine can't be, or run") {
    for (const char* name : {"cuda:", "cuda:x", "cuda:-1", "cuda-emulate", "sm_70", "nvidia"}) {
        CAPTURE(name);
        const Result<Target> target = Target::cuda(name);
        REQUIRE(!target.has_value());
        CHECK(target.error().status() == KVJIT_BAD_TARGET);
    }
    const Result<Target> none = Target::cuda_device(4096);
    REQUIRE(!none.has_value());
    CHECK(none.error().status() == KVJIT_CUDA_ERROR);
}

}  // namespace
}  // namespace kvjit::test

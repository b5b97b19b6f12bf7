// What a run costs the host: checks, binding and launches. The work itself is as small as can be.
#include <chrono>

#include "gpu/bench/setup.h"

namespace kvjit::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kHeads = 32, kKvHeads = 8, kDim = 128, kPage = 128;
constexpr int kRuns = 200;  // between two waits: far fewer than a stream takes before it makes the host wait
constexpr char kSpec[] =
    "op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f16,cache_mode=page_table,page_size=128,layout=L2HTD";

/// One sequence with one new token and one page.
struct SmallCall {
    explicit SmallCall(const gpu::Gpu& gpu)
        : rows(normal_halves(gpu, kHeads * kDim * 2)),
          output(gpu, rows.size()),
          cache(normal_halves(gpu, 2 * kKvHeads * kPage * kDim * 2)),
          starts(indices<std::int64_t>(gpu, {0, 1})),
          zero(indices<std::int64_t>(gpu, {0})) {}

    Batch batch() const {
        Batch batch;
        batch.batch_size = batch.decoding_batches = batch.max_seqlen = batch.max_kvlen = 1;
        batch.num_heads = kHeads;
        batch.num_kv_heads = kKvHeads;
        batch.max_tokens = kPage;
        batch.seqstarts = batch.kvstarts = static_cast<const std::int64_t*>(starts.data());
        batch.start_pos = static_cast<const std::int64_t*>(zero.data());
        batch.cachestarts = Tensor(zero.data(), KVJIT_I64, {1, 1});
        return batch;
    }
    Tensors tensors(bool stores) const {
        Tensors tensors;
        tensors.query = Tensor(rows.data(), KVJIT_F16, {1, kHeads, kDim});
        tensors.attn_output = Tensor(output.data(), KVJIT_F16, {1, kHeads, kDim});
        tensors.cache = Tensor(cache.data(), KVJIT_F16, {1, 2, kKvHeads, kPage, kDim});
        if (!stores) return tensors;
        tensors.current_key = tensors.current_value = Tensor(rows.data(), KVJIT_F16, {1, kKvHeads, kDim});
        return tensors;
    }

    gpu::DeviceMemory rows, output, cache, starts, zero;
};

void bench_runs(const Setup& setup, const char* what, Plan& plan, const Tensors& tensors) {
    std::vector<double> times;
    for (int round = -1; round < setup.rounds(); ++round) {
        const auto start = Clock::now();
        for (int i = 0; i < kRuns; ++i) expect_done(plan.run(tensors));
        const std::chrono::duration<double, std::micro> taken = Clock::now() - start;
        expect_done(plan.synchronize());
        if (round >= 0) times.push_back(taken.count() / kRuns);
    }
    setup.report.add({"host, a run", "", what, "kvjit", times, 0, 0, {}});
}

}  // namespace

void bench_launch(const Setup& setup) {
    const SmallCall call(setup.gpu);
    Plan plan = plan_for(setup, kSpec, call.batch());
    bench_runs(setup, "attend", plan, call.tensors(false));
    bench_runs(setup, "store, attend", plan, call.tensors(true));
    Plan checked = plan_for(setup, kSpec, call.batch(), KVJIT_CHECK_FULL);
    bench_runs(setup, "check, store, attend", checked, call.tensors(true));
}

}  // namespace kvjit::bench

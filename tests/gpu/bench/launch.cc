// What a run costs the host: checks, binding and launches. The work itself is as small as can be.
#include <chrono>

#include "call/call.h"
#include "gpu/bench/setup.h"

namespace kvjit::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRuns = 200;  // between two waits: far fewer than a stream takes before it makes the host wait
constexpr char kSpec[] =
    "op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f16,cache_mode=page_table,page_size=128,layout=L2HTD";

test::CallShape one_token() {
    test::CallShape shape = test::even_shape(kSpec, 1, 1, 1);
    shape.num_kv_heads = 8;
    return shape;
}

/// One sequence with one new token and one page.
class SmallCall {
public:
    explicit SmallCall(const gpu::Gpu& gpu)
        : pieces_(gpu), call_(one_token(), [this](std::size_t bytes) { return pieces_.take_normal(bytes); }) {
        call_.batch.decoding_batches = call_.batch.max_seqlen = call_.batch.max_kvlen = 1;
        call_.bind([this](const void* data, std::size_t bytes) { return pieces_.put(data, bytes); });
        call_.tensors.lse = {};
    }
    const kvjit_batch& batch() const { return call_.batch; }
    kvjit_tensors tensors(bool stores) const {
        kvjit_tensors tensors = call_.tensors;
        if (!stores) tensors.current_key = tensors.current_value = {};
        return tensors;
    }

private:
    DevicePieces pieces_;
    test::ApiCall call_;
};

void bench_runs(const Setup& setup, const char* what, Plan& plan, const kvjit_tensors& tensors) {
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

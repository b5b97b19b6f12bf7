// Ready executors for programs' threads, and the default one under each policy: all give the bits of one thread.
#include <doctest/doctest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "kvjit/kvjit.hpp"

#if defined(_OPENMP)
#include "kvjit/interop/openmp.h"
#endif
#if defined(HAS_TBB)
#include "kvjit/interop/onetbb.h"
#endif

using namespace kvjit;

namespace {

const Kernel& attention() {
    static const Engine engine = Engine::create().value();
    static const Kernel kernel =
        engine.kernel(KernelSpec::parse("op=MultiHeadAttention,head_dim=64,group=4,t1=f32,is_causal=1").value())
            .value();
    return kernel;
}

/// Output of a decode over many keys, whose partial results are merged, beside a prefill and an empty sequence.
std::vector<float> run(const PlanOptions& options) {
    constexpr std::int64_t kTokens = 101, kKeys = 6100;
    const std::vector<std::int64_t> tokens{0, 1, 1, kTokens}, keys{0, 6000, 6000, kKeys};
    Batch batch;
    batch.num_heads = 8;
    batch.set_seqstarts(tokens).set_kvstarts(keys);
    std::vector<float> query(kTokens * 8 * 64), key(kKeys * 2 * 64), value(key.size()), output(query.size());
    for (std::size_t i = 0; i < query.size(); ++i) query[i] = static_cast<float>(i % 61) / 61;
    for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<float>(i % 53) / 53, value[i] = key[i] - 0.5f;
    Tensors tensors;
    tensors.query = Tensor(query, {kTokens, 8, 64});
    tensors.key = Tensor(key, {kKeys, 2, 64});
    tensors.value = Tensor(value, {kKeys, 2, 64});
    tensors.attn_output = Tensor(output, {kTokens, 8, 64});
    auto plan = attention().plan(batch, options).value();
    for (int layer = 0; layer < 20; ++layer) plan.run(tensors).value();
    return output;
}

std::vector<float> run_on(const Executor& executor) {
    PlanOptions options;
    options.executor = &executor;
    return run(options);
}

const std::vector<float>& of_one_thread() {
    static const std::vector<float> output = [] {
        PlanOptions options;
        options.num_threads = 1;
        return run(options);
    }();
    return output;
}

/// Runs of several threads at once, too.
[[maybe_unused]] void check_same_bits(const Executor& executor) {
    CHECK(executor.concurrency >= 1);
    CHECK(run_on(executor) == of_one_thread());
    std::vector<float> other;
    std::thread beside([&] { other = run_on(executor); });
    CHECK(run_on(executor) == of_one_thread());
    beside.join();
    CHECK(other == of_one_thread());
}

}  // namespace

TEST_CASE("the default executor gives the same bits however long its threads spin, and however many are asked for") {
    for (const std::uint32_t threads : {0u, 2u, 3u, 1024u}) {
        for (const std::int64_t spin : {-1, 0, 1, 1000, 1000000}) {
            PlanOptions options;
            options.num_threads = threads;
            options.spin_us = spin;
            CHECK(run(options) == of_one_thread());
        }
    }
}

#if defined(_OPENMP)
TEST_CASE("OpenMP's threads give the same bits, inside of a region, too") {
    check_same_bits(interop::openmp::executor());
    check_same_bits(interop::openmp::executor(3));
    CHECK(interop::openmp::executor(3).concurrency == 3);
    const Executor executor = interop::openmp::executor();
    std::vector<float> inside;
#pragma omp parallel
#pragma omp single
    inside = run_on(executor);
    CHECK(inside == of_one_thread());
}
#endif

#if defined(HAS_TBB)
TEST_CASE("oneTBB's threads give the same bits, in an arena and inside of a task, too") {
    check_same_bits(interop::onetbb::executor());
    tbb::task_arena arena(2);
    check_same_bits(interop::onetbb::executor(arena));
    CHECK(interop::onetbb::executor(arena).concurrency == 2);
    const Executor executor = interop::onetbb::executor();
    std::vector<std::vector<float>> inside(4);
    tbb::parallel_for(std::size_t{0}, inside.size(), [&](std::size_t i) { inside[i] = run_on(executor); });
    for (const std::vector<float>& output : inside) CHECK(output == of_one_thread());
}
#endif

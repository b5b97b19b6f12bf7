// A prefill on an engine's own threads: by OpenMP, by oneTBB (each where the build has it), and by a pool of
// std::threads. Whose threads they are changes no bit of the output.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "kvjit/kvjit.hpp"

#if defined(_OPENMP)
#include "kvjit/interop/openmp.h"
#endif
#if defined(HAS_TBB)
#include "kvjit/interop/onetbb.h"
#endif

/// Stands for what an engine has.
class Pool {
public:
    explicit Pool(int threads) {
        for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
    }
    ~Pool() {
        for (std::size_t i = 0; i < threads_.size(); ++i) submit({});
        for (std::thread& thread : threads_) thread.join();
    }
    Pool(const Pool&) = delete;

    /// An empty job ends the thread that gets it.
    std::future<void> submit(std::packaged_task<void()> job) {
        std::future<void> done = job.valid() ? job.get_future() : std::future<void>();
        const std::lock_guard<std::mutex> lock(mutex_);
        jobs_.push(std::move(job));
        arrived_.notify_one();
        return done;
    }
    int size() const { return static_cast<int>(threads_.size()); }

private:
    void serve() {
        for (std::packaged_task<void()> job = next(); job.valid(); job = next()) job();
    }
    std::packaged_task<void()> next() {
        std::unique_lock<std::mutex> lock(mutex_);
        arrived_.wait(lock, [this] { return !jobs_.empty(); });
        std::packaged_task<void()> job = std::move(jobs_.front());
        jobs_.pop();
        return job;
    }

    std::mutex mutex_;
    std::condition_variable arrived_;
    std::queue<std::packaged_task<void()>> jobs_;
    std::vector<std::thread> threads_;
};

/// On the pool's threads and the caller's. The pool outlives the executor.
kvjit::Executor on_pool(Pool& pool) {
    return {pool.size() + 1, [&pool](std::int64_t count, kvjit::Task task) {
                std::atomic<std::int64_t> next{0};
                const auto work = [&] {
                    for (std::int64_t i = next++; i < count; i = next++) task(i);
                };
                std::vector<std::future<void>> others;
                for (int i = 0; i < pool.size(); ++i) others.push_back(pool.submit(std::packaged_task<void()>(work)));
                work();
                for (std::future<void>& other : others) other.wait();
            }};
}

/// Attention of two prompts of 100 and 28 tokens. Null: by kvjit's own threads.
std::vector<float> prefill(const kvjit::Kernel& kernel, const kvjit::Executor* executor) {
    const std::vector<std::int64_t> starts{0, 100, 128};
    kvjit::Batch batch;
    batch.num_heads = 8;
    batch.set_seqstarts(starts).set_kvstarts(starts);
    kvjit::PlanOptions options;
    options.executor = executor;
    auto plan = kernel.plan(batch, options).value();

    std::vector<float> query(128 * 8 * 64), key(128 * 2 * 64, 0.2f), value(128 * 2 * 64, 0.3f), output(query.size());
    for (std::size_t i = 0; i < query.size(); ++i) query[i] = static_cast<float>(i % 61) / 61;
    kvjit::Tensors tensors;
    tensors.query = kvjit::Tensor(query, {128, 8, 64});
    tensors.key = kvjit::Tensor(key, {128, 2, 64});
    tensors.value = kvjit::Tensor(value, {128, 2, 64});
    tensors.attn_output = kvjit::Tensor(output, {128, 8, 64});
    plan.run(tensors).value();
    return output;
}

int main() try {
    const auto engine = kvjit::Engine::create().value();
    const auto spec = kvjit::KernelSpec::parse("op=MultiHeadAttention,head_dim=64,group=4,t1=f32,is_causal=1").value();
    const auto kernel = engine.kernel(spec).value();
    const std::vector<float> expected = prefill(kernel, nullptr);
    int differ = 0;
    const auto show = [&](const char* name, const kvjit::Executor& executor) {
        const bool same = prefill(kernel, &executor) == expected;
        std::printf("%s, %d threads: %s\n", name, executor.concurrency, same ? "the same bits" : "other bits");
        differ += !same;
    };
#if defined(_OPENMP)
    show("OpenMP", kvjit::interop::openmp::executor());
#endif
#if defined(HAS_TBB)
    show("oneTBB", kvjit::interop::onetbb::executor());
#endif
    Pool pool(2);
    show("std::thread", on_pool(pool));
    return differ;
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}

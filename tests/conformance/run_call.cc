#include "conformance/run_call.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "call/oracle.h"
#include "conformance/options.h"
#include "support/guarded_buffer.h"

namespace kvjit::test {
namespace {

template <auto kRelease>
struct Release {
    template <class T>
    void operator()(T* handle) const {
        kRelease(handle);
    }
};

/// Fills what a task's frames will take with NaNs, or very large numbers, of floating-point types.
/// A kernel that reads of its frame what it has not written gives other bits than on the stack of a pool's thread.
[[gnu::noinline]] void soil_stack(std::int64_t task) {
    unsigned char frames[640 << 10];  // templates assert that frames take 600 KiB at most
    std::memset(frames, task % 2 == 0 ? 0xff : 0x7f, sizeof(frames));
    asm volatile("" : : "r"(frames) : "memory");  // not left out, though nobody reads it
}

}  // namespace

void OrderedExecutor::run(void* self, void (*task)(void*, std::int64_t), void* argument, std::int64_t count) {
    auto* executor = static_cast<OrderedExecutor*>(self);
    std::vector<std::int64_t> tasks(static_cast<std::size_t>(count));
    std::iota(tasks.begin(), tasks.end(), 0);
    if (executor->order_ == Order::kReversed) std::ranges::reverse(tasks);
    if (executor->order_ == Order::kShuffled) executor->rng_.shuffle(tasks);
    for (const std::int64_t i : tasks) {
        soil_stack(i);
        task(argument, i);
    }
}

std::string error_text(const char* where, const kvjit_error& error) {
    return std::string(where) + ": " + kvjit_status_name(static_cast<kvjit_status>(error.status)) + ": " +
           error.message;
}

kvjit_engine* shared_engine() {
    static const std::unique_ptr<kvjit_engine, Release<kvjit_engine_release>> engine([] {
        kvjit_engine* made = nullptr;
        kvjit_engine_create(nullptr, &made, nullptr);
        return made;
    }());
    return engine.get();
}

const Target& chosen_target() {
    static const Target target([] {
        kvjit_error error;
        kvjit_error_init(&error);
        kvjit_target* made = nullptr;
        if (kvjit_target_create(options().target.c_str(), &made, &error) == KVJIT_OK) return made;
        std::fprintf(stderr, "%s\n", error_text("kvjit_target_create", error).c_str());
        std::exit(2);
    }());
    return target;
}

bool multiplies_tiles() {
    const auto spec = KernelSpec::parse("op=MultiHeadAttention,t1=bf16").value();
    const auto kernel = Engine::create().value().kernel(spec, chosen_target()).value();
    return kernel.images(KVJIT_PROGRAM_PREFILL).value().front().variant == "amx";
}

namespace {

void choose_cpu(const RunOptions& options, const kvjit_executor& executor, kvjit_plan_options& plan) {
    plan.num_threads = options.threads;
    if (options.order != Order::kPool) plan.executor = &executor;
}

/// A mirror where the plan couldn't do without, and where the host is to check the arrays.
void choose_cuda(const RunOptions& options, const kvjit_batch& batch, kvjit_plan_options& plan) {
    const bool bounds_known = batch.max_seqlen != 0 && batch.max_kvlen != 0;
    const bool host_checks = options.check_level == KVJIT_CHECK_FULL && !options.device_checks;
    if (!bounds_known || host_checks) plan.host_batch = &batch;
    plan.split_keys = options.split_keys;
}

}  // namespace

BoundPlan::BoundPlan(const Bound& bound, const RunOptions& run)
    : executor_(std::make_shared<OrderedExecutor>(run.order, run.shuffle_seed)) {
    kvjit_error error;
    kvjit_error_init(&error);
    kvjit_kernel* kernel = nullptr;
    const Target& target = run.target == nullptr ? chosen_target() : *run.target;
    if (kvjit_engine_kernel(shared_engine(), &bound.spec, target.get(), &kernel, &error) != KVJIT_OK) {
        error_ = error_text("kvjit_engine_kernel", error);
        return;
    }
    const std::unique_ptr<kvjit_kernel, Release<kvjit_kernel_release>> kernel_owner(kernel);
    const kvjit_executor executor = executor_->view(run.threads);
    kvjit_plan_options plan_options;
    kvjit_plan_options_init(&plan_options);
    plan_options.check_level = run.check_level;
    plan_options.stores_nothing = run.stores_nothing;
    options().on_cuda() ? choose_cuda(run, bound.batch, plan_options) : choose_cpu(run, executor, plan_options);
    kvjit_plan* plan = nullptr;
    if (kvjit_plan_create(kernel, &bound.batch, &plan_options, &plan, &error) != KVJIT_OK) {
        error_ = error_text("kvjit_plan_create", error);
    }
    plan_.reset(plan);
}

std::string BoundPlan::run(const Bound& bound) const {
    if (!plan_) return error_;
    kvjit_error error;
    kvjit_error_init(&error);
    if (kvjit_run(plan_.get(), &bound.tensors, bound.layer, &error) != KVJIT_OK) return error_text("kvjit_run", error);
    if (kvjit_plan_synchronize(plan_.get(), &error) != KVJIT_OK) return error_text("kvjit_plan_synchronize", error);
    return "";
}

namespace {

/// A batch whose index arrays lie in pages that a GPU reaches, where those of many tests do not.
class ReachableBatch {
public:
    explicit ReachableBatch(const Bound& bound) : batch_(bound.batch) {
        const std::size_t width = bound.spec.starts_type == KVJIT_I32 ? 4 : 8;
        const auto sequences = static_cast<std::size_t>(batch_.batch_size);
        for (const void** starts : {&batch_.seqstarts, &batch_.kvstarts, &batch_.rowstarts})
            copy(*starts, (sequences + 1) * width);
        for (const void** each : {&batch_.start_pos, &batch_.row_index, &batch_.kvlens, &batch_.last_page_len})
            copy(*each, sequences * width);
        for (kvjit_tensor* table : {&batch_.cachestarts, &batch_.scalestarts, &batch_.store_slots}) {
            const void* data = table->data;
            copy(data, bytes_of(*table));
            table->data = const_cast<void*>(data);
        }
    }
    const kvjit_batch& batch() const { return batch_; }

private:
    static std::size_t bytes_of(const kvjit_tensor& table) {
        std::int64_t elements = 1;
        for (std::int32_t axis = 0; axis < table.rank; ++axis) {
            if (table.shape[axis] == 0) return 0;
            elements += (table.shape[axis] - 1) * table.strides[axis];
        }
        return static_cast<std::size_t>(elements) * oracle::bytes_of(table.dtype);
    }
    void copy(const void*& array, std::size_t bytes) {
        if (array == nullptr) return;
        GuardedBuffer& made = copies_.emplace_back(bytes, Guard::kAfter);
        std::memcpy(made.data(), array, bytes);
        array = made.data();
    }

    kvjit_batch batch_;
    std::vector<GuardedBuffer> copies_;
};

}  // namespace

std::string run_bound(const Bound& bound, const RunOptions& options) {
    if (!test::options().on_gpu()) return BoundPlan(bound, options).run(bound);
    const ReachableBatch reachable(bound);
    Bound moved = bound;
    moved.batch = reachable.batch();
    return BoundPlan(moved, options).run(moved);
}

std::string run_call(const Call& call) {
    // What threads are to a CPU's plan, splits are to a GPU's: one thread stands for a fixed split.
    const std::int64_t split_keys = call.which.threads == 1 ? RunOptions().split_keys : 0;
    return run_bound(bind(call), {call.which.threads, call.which.order, 1, call.which.check_level, split_keys,
                                  call.which.stores == Stores::kNever});
}

std::vector<std::byte> output_on(const char* name, kvjit_programs program, const std::string& variant,
                                 const Case& which) {
    const auto target = kvjit::Target::cpu(name);
    REQUIRE(target.has_value());
    Call call = make_call(which, 211, 212);
    const std::string error = run_bound(bind(call), {.target = &*target});
    if (error.contains("KVJIT_BAD_TARGET")) return {};
    REQUIRE(error == "");
    static const auto engine = Engine::create();
    CHECK(engine->kernel(which.spec, *target)->images(program)->front().variant == variant);
    return call.attn_output.packed();
}

}  // namespace kvjit::test

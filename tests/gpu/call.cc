#include "gpu/call.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kSplitKeys = 256;

Target target_named(const std::string& name) {
    if (name == "cuda-emulated") return value_of(Target::cuda_emulated());
    return value_of(Target::cuda_device(std::stoi(name.substr(name.find(':') + 1))));
}

}  // namespace

const Engine& shared_engine() {
    static const Engine engine = value_of(Engine::create());
    return engine;
}

Kernel kernel_for(const Step& step, const Engine& engine) {
    return value_of(engine.kernel(step.spec(), target_named(step.machine().target())));
}

PlanOptions unchecked_options(void* stream) {
    PlanOptions options;
    options.check_level = KVJIT_CHECK_NONE;
    options.stream = stream;
    options.split_keys = kSplitKeys;
    return options;
}

PlanOptions checked_options(void* stream) {
    PlanOptions options = unchecked_options(stream);
    options.check_level = KVJIT_CHECK_FULL;
    return options;
}

Plan plan_for(const Step& step, const PlanOptions& options) {
    return value_of(kernel_for(step).plan(step.batch(), options));
}

void run(Plan& plan, const Step& step) {
    expect_done(plan.run(step.tensors(), step.problem().layer));
}

Written run_alone(Step& step, const PlanOptions& options) {
    step.reset();
    Plan plan = plan_for(step, options);
    run(plan, step);
    expect_done(plan.synchronize());
    return step.written();
}

}  // namespace kvjit::test

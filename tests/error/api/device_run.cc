#include "device_run.h"

#include "common/abi.h"
#include "public_call.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kRows = 96;

gen::Result<void> result_of(kvjit_status status, const kvjit_error& error) {
    if (status == KVJIT_OK) return {};
    return std::unexpected(gen::Error{status, error.message, error.argument, error.value, error.limit, error.sequence});
}

Handle<kvjit_kernel> device_kernel(const gen::KernelSpec& spec) {
    static const Handle<kvjit_target> target = [] {
        kvjit_target* made = nullptr;
        REQUIRE(kvjit_target_create("cuda-emulated", &made, nullptr) == KVJIT_OK);
        return Handle<kvjit_target>(made);
    }();
    kvjit_kernel* kernel = nullptr;
    REQUIRE(kvjit_engine_kernel(shared_engine(), &spec, target.get(), &kernel, nullptr) == KVJIT_OK);
    return Handle<kvjit_kernel>(kernel);
}

kvjit_batch with_bounds(kvjit_batch batch) {
    if (batch.max_seqlen == 0) batch.max_seqlen = abi::kMaxNewTokens;
    if (batch.max_kvlen == 0) batch.max_kvlen = abi::kMaxKeys;
    return batch;
}

gen::Result<void> run(kvjit_plan* plan, const BatchCase& c, bool stores) {
    CallTensors call(c, {kRows, kRows});
    if (!stores) call.tensors.current_key = call.tensors.current_value = {};
    const std::vector<std::byte> before = call.snapshot(), codes = c.code_blocks.memory, scales = c.scale_blocks.memory;
    kvjit_error error = new_error();
    if (const auto status = kvjit_run(plan, &call.tensors, 1, &error); status != KVJIT_OK)
        return result_of(status, error);
    const kvjit_status status = kvjit_plan_synchronize(plan, &error);
    const bool unchanged =
        call.snapshot() == before && c.code_blocks.memory == codes && c.scale_blocks.memory == scales;
    CHECK((status == KVJIT_OK || unchanged));
    return result_of(status, error);
}

}  // namespace

gen::Result<void> run_on_device(const BatchCase& c, const rt::BatchUse& use) {
    const Handle<kvjit_kernel> kernel = device_kernel(c.spec);
    const kvjit_batch batch = with_bounds(c.batch);
    kvjit_plan_options options;
    kvjit_plan_options_init(&options);
    options.check_level = use.level;
    options.stores_nothing = use.stores ? 0 : 1;
    kvjit_error error = new_error();
    kvjit_plan* made = nullptr;
    const kvjit_status status = kvjit_plan_create(kernel.get(), &batch, &options, &made, &error);
    if (status != KVJIT_OK) return result_of(status, error);
    const Handle<kvjit_plan> plan(made);
    return run(plan.get(), c, use.stores);
}

}  // namespace kvjit::test

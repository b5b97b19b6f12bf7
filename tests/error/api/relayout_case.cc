#include "relayout_case.h"

#include <string>

namespace kvjit::test {
namespace {

/// Those that a relayout takes.
kvjit_tensors cache_alone(const kvjit_tensors& all) {
    kvjit_tensors cache;
    kvjit_tensors_init(&cache);
    for (const auto member : {&kvjit_tensors::cache, &kvjit_tensors::scale, &kvjit_tensors::key_cache,
                              &kvjit_tensors::value_cache, &kvjit_tensors::key_scale, &kvjit_tensors::value_scale})
        cache.*member = all.*member;
    return cache;
}

std::string with_op(std::string_view fields) {
    return "op=KeyValueCache," + std::string(fields);
}

}  // namespace

RelayoutCase::RelayoutCase(std::string_view from_text, std::string_view to_text)
    : from(with_op(from_text)), to(with_op(to_text)), from_memory_(from, {6, 18}), to_memory_(to, {6, 18}) {
    kvjit_relayout_init(&relayout);
    relayout.from = &from.batch;
    relayout.to = &to.batch;
    kvjit_plan_options_init(&options);
    options.num_threads = 1;
    read = cache_alone(from_memory_.tensors);
    written = cache_alone(to_memory_.tensors);
}

kvjit_spec RelayoutCase::spec() const {
    kvjit_spec spec;
    kvjit_error error = new_error();
    REQUIRE_MESSAGE(kvjit_relayout_spec(&from.spec, &to.spec, &spec, &error) == KVJIT_OK, std::string(error.message));
    return spec;
}

kvjit_status RelayoutCase::try_plan(Handle<kvjit_plan>* plan, kvjit_error* error) const {
    const Handle<kvjit_kernel> kernel = kernel_of(spec());
    kvjit_plan* made = nullptr;
    const kvjit_status status = kvjit_relayout_plan_create(kernel.get(), &relayout, &options, &made, error);
    CHECK((status == KVJIT_OK) == (made != nullptr));
    plan->reset(made);
    return status;
}

Handle<kvjit_plan> RelayoutCase::plan() const {
    Handle<kvjit_plan> plan;
    kvjit_error error = new_error();
    const kvjit_status status = try_plan(&plan, &error);
    REQUIRE_MESSAGE(status == KVJIT_OK, std::string(error.message));
    return plan;
}

kvjit_status RelayoutCase::run(kvjit_plan* plan, kvjit_error* error) const {
    return kvjit_relayout_run(plan, &read, from_layer, &written, to_layer, error);
}

std::vector<std::byte> RelayoutCase::snapshot() const {
    std::vector<std::byte> all = from_memory_.snapshot();
    const std::vector<std::byte> other = to_memory_.snapshot();
    all.insert(all.end(), other.begin(), other.end());
    for (const BatchCase* side : {&from, &to}) {
        for (const BlockMemory* blocks : {&side->code_blocks, &side->scale_blocks})
            all.insert(all.end(), blocks->memory.begin(), blocks->memory.end());
    }
    return all;
}

}  // namespace kvjit::test

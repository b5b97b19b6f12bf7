#include "public_call.h"

namespace kvjit::test {

kvjit_error new_error() {
    kvjit_error error;
    kvjit_error_init(&error);
    return error;
}

kvjit_engine* shared_engine() {
    static const Handle<kvjit_engine> engine = [] {
        kvjit_engine_options options;
        kvjit_engine_options_init(&options);
        options.cache_dir = "";
        options.jit = 1;
        kvjit_engine* made = nullptr;
        REQUIRE(kvjit_engine_create(&options, &made, nullptr) == KVJIT_OK);
        return Handle<kvjit_engine>(made);
    }();
    return engine.get();
}

Handle<kvjit_kernel> kernel_of(const kvjit_spec& spec) {
    kvjit_kernel* kernel = nullptr;
    REQUIRE(kvjit_engine_kernel(shared_engine(), &spec, nullptr, &kernel, nullptr) == KVJIT_OK);
    return Handle<kvjit_kernel>(kernel);
}

kvjit_status try_plan(const BatchCase& c, Handle<kvjit_plan>* plan, kvjit_error* error) {
    const Handle<kvjit_kernel> kernel = kernel_of(c.spec);
    kvjit_plan_options options;
    kvjit_plan_options_init(&options);
    options.num_threads = 1;
    kvjit_plan* made = nullptr;
    const kvjit_status status = kvjit_plan_create(kernel.get(), &c.batch, &options, &made, error);
    CHECK((status == KVJIT_OK) == (made != nullptr));
    plan->reset(made);
    return status;
}

Handle<kvjit_plan> plan_of(const BatchCase& c) {
    Handle<kvjit_plan> plan;
    kvjit_error error = new_error();
    const kvjit_status status = try_plan(c, &plan, &error);
    REQUIRE_MESSAGE(status == KVJIT_OK, std::string(error.message));
    return plan;
}

void expect_error(kvjit_status status, const kvjit_error& error, const Refusal& want) {
    CHECK(status == error.status);
    gen::Error copy{static_cast<kvjit_status>(error.status),
                    error.message,
                    error.argument,
                    error.value,
                    error.limit,
                    error.sequence};
    expect_refused(std::unexpected(copy), want);
}

}  // namespace kvjit::test

// Null pointers, unset structs and bad options: an error or nothing, never a crash.
#include <cstddef>
#include <cstring>
#include <string>

#include "public_call.h"
#include "tensors_misuse.h"

namespace kvjit::test {
namespace {

void drop(void*, const char*, size_t) {}

void expect_null(kvjit_status status, const kvjit_error& error, const char* argument) {
    CAPTURE(std::string(argument));
    CHECK(status == KVJIT_BAD_ARGUMENT);
    CHECK(error.argument == std::string(argument));
    CHECK(std::string(error.message).find(argument) != std::string::npos);
}

TEST_CASE("null arguments of specs, lists of them, and targets") {
    kvjit_error e = new_error();
    kvjit_spec spec;
    kvjit_spec_init(&spec);
    kvjit_target* target = nullptr;
    expect_null(kvjit_spec_parse(nullptr, &spec, &e), e, "text");
    expect_null(kvjit_spec_parse("op=Merge", nullptr, &e), e, "spec");
    const auto take = [](void*, std::int64_t, const kvjit_spec*) { FAIL("a refused list was handed over"); };
    expect_null(kvjit_spec_list_parse(nullptr, 1, take, nullptr, nullptr, &e), e, "text");
    expect_null(kvjit_spec_list_parse("op=Merge", 1, nullptr, nullptr, nullptr, &e), e, "take");
    expect_error(kvjit_spec_list_parse("op=Merge", 0, take, nullptr, nullptr, &e), e,
                 bad_argument("max_combinations", 0, 1));
    CHECK(kvjit_spec_list_parse("op=Merge\nop=?", 2, take, nullptr, nullptr, &e) == KVJIT_BAD_SPEC);
    expect_null(kvjit_spec_print(nullptr, drop, nullptr, &e), e, "spec");
    expect_null(kvjit_spec_print(&spec, nullptr, nullptr, &e), e, "sink");
    expect_null(kvjit_target_create(nullptr, &target, &e), e, "name");
    expect_null(kvjit_target_create("x86-64", nullptr, &e), e, "target");
}

TEST_CASE("null arguments of engines and kernels") {
    kvjit_error e = new_error();
    kvjit_spec spec;
    kvjit_spec_init(&spec);
    kvjit_kernel* kernel = nullptr;
    const Handle<kvjit_kernel> some = kernel_of(spec);
    expect_null(kvjit_engine_create(nullptr, nullptr, &e), e, "engine");
    expect_null(kvjit_engine_kernel(nullptr, &spec, nullptr, &kernel, &e), e, "engine");
    expect_null(kvjit_engine_kernel(shared_engine(), nullptr, nullptr, &kernel, &e), e, "spec");
    expect_null(kvjit_engine_kernel(shared_engine(), &spec, nullptr, nullptr, &e), e, "kernel");
    expect_null(kvjit_engine_add_bundle(nullptr, "path", &e), e, "engine");
    expect_null(kvjit_engine_add_bundle(shared_engine(), nullptr, &e), e, "path");
    expect_null(kvjit_engine_add_bundle_memory(nullptr, "bytes", 5, &e), e, "engine");
    expect_null(kvjit_engine_add_bundle_memory(shared_engine(), nullptr, 5, &e), e, "bundle");
    expect_null(kvjit_engine_prepare(nullptr, &spec, 1, nullptr, nullptr, &e), e, "engine");
    expect_null(kvjit_engine_prepare(shared_engine(), nullptr, 1, nullptr, nullptr, &e), e, "specs");
    CHECK(kvjit_engine_prepare(shared_engine(), nullptr, 0, nullptr, nullptr, &e) == KVJIT_OK);
    expect_null(kvjit_kernel_prepare(nullptr, KVJIT_PROGRAM_STORE, &e), e, "kernel");
    expect_null(kvjit_kernel_emit(nullptr, KVJIT_PROGRAM_STORE, KVJIT_STAGE_SOURCE, drop, nullptr, &e), e, "kernel");
    expect_null(kvjit_kernel_emit(some.get(), KVJIT_PROGRAM_STORE, KVJIT_STAGE_SOURCE, nullptr, nullptr, &e), e,
                "sink");
    const auto image = [](void*, const kvjit_image_info*) {};
    expect_null(kvjit_kernel_images(nullptr, KVJIT_PROGRAM_STORE, image, nullptr, &e), e, "kernel");
    expect_null(kvjit_kernel_images(some.get(), KVJIT_PROGRAM_STORE, nullptr, nullptr, &e), e, "image");
    expect_null(kvjit_engine_explain(nullptr, &spec, nullptr, KVJIT_ALL_PROGRAMS, drop, nullptr, &e), e, "engine");
    expect_null(kvjit_engine_explain(shared_engine(), nullptr, nullptr, KVJIT_ALL_PROGRAMS, drop, nullptr, &e), e,
                "spec");
    expect_null(kvjit_engine_explain(shared_engine(), &spec, nullptr, KVJIT_ALL_PROGRAMS, nullptr, nullptr, &e), e,
                "sink");
}

TEST_CASE("null arguments of a comparison") {
    kvjit_error e = new_error();
    expect_null(kvjit_identity_diff(nullptr, "", drop, nullptr, &e), e, "before");
    expect_null(kvjit_identity_diff("", nullptr, drop, nullptr, &e), e, "after");
    expect_null(kvjit_identity_diff("", "", nullptr, nullptr, &e), e, "sink");
}

TEST_CASE("null arguments of plans and runs") {
    kvjit_error e = new_error();
    TensorsCase c(kDensePlain);
    const Handle<kvjit_kernel> kernel = kernel_of(c.spec);
    const Handle<kvjit_plan> plan = plan_of(c);
    kvjit_plan* made = nullptr;
    expect_null(kvjit_plan_create(nullptr, &c.batch, nullptr, &made, &e), e, "kernel");
    expect_null(kvjit_plan_create(kernel.get(), nullptr, nullptr, &made, &e), e, "batch");
    expect_null(kvjit_plan_create(kernel.get(), &c.batch, nullptr, nullptr, &e), e, "plan");
    expect_null(kvjit_run(nullptr, &c.tensors, 0, &e), e, "plan");
    expect_null(kvjit_run(plan.get(), nullptr, 0, &e), e, "tensors");
    CHECK(made == nullptr);
}

TEST_CASE("null handles are released, retained and described") {
    kvjit_error_init(nullptr);
    kvjit_spec_init(nullptr);
    kvjit_batch_init(nullptr);
    kvjit_tensors_init(nullptr);
    kvjit_plan_options_init(nullptr);
    kvjit_engine_options_init(nullptr);
    kvjit_prepare_options_init(nullptr);
    kvjit_relayout_init(nullptr);
    kvjit_spec_fields(nullptr, nullptr);
    kvjit_target_list(nullptr, nullptr);
    kvjit_program_list(nullptr, nullptr);
    kvjit_engine_seal(nullptr);
    kvjit_target_release(nullptr);
    kvjit_engine_release(nullptr);
    kvjit_kernel_release(nullptr);
    kvjit_plan_release(nullptr);
    kvjit_target_print(nullptr, drop, nullptr);
    kvjit_plan_describe(nullptr, drop, nullptr);
    kvjit_engine_get_stats(nullptr, nullptr);
    CHECK(kvjit_kernel_retain(nullptr) == nullptr);
    CHECK(kvjit_plan_workspace_bytes(nullptr) == 0);
    CHECK(kvjit_tensor_contiguous(nullptr, KVJIT_F32, 7, nullptr).rank == 0);
    CHECK(kvjit_tensor_contiguous(nullptr, KVJIT_F32, 2, nullptr).rank == 0);
    CHECK(std::strlen(kvjit_status_name(static_cast<kvjit_status>(12))) > 0);
}

TEST_CASE("an error struct is optional, and one that was not initialised is left alone") {
    CHECK(kvjit_spec_parse("op=?", nullptr, nullptr) == KVJIT_BAD_ARGUMENT);
    kvjit_error raw;
    std::memset(&raw, 0, sizeof raw);
    CHECK(kvjit_spec_parse(nullptr, nullptr, &raw) == KVJIT_BAD_ARGUMENT);
    CHECK(raw.message[0] == '\0');
}

TEST_CASE("structs of another size") {
    TensorsCase c(kDensePlain);
    const Handle<kvjit_kernel> kernel = kernel_of(c.spec);
    const Handle<kvjit_plan> plan = plan_of(c);
    kvjit_plan* made = nullptr;
    kvjit_error e = new_error();
    for (const std::uint32_t size : {0U, 3U, 100000U}) {
        c.batch.struct_size = size;
        CHECK(kvjit_plan_create(kernel.get(), &c.batch, nullptr, &made, &e) == KVJIT_BAD_ARGUMENT);
        CHECK(e.argument == std::string("batch.struct_size"));
        c.tensors.struct_size = size;
        CHECK(kvjit_run(plan.get(), &c.tensors, 0, &e) == KVJIT_BAD_ARGUMENT);
        CHECK(e.argument == std::string("tensors.struct_size"));
    }
    CHECK(made == nullptr);
}

struct OptionMisuse {
    std::string_view name;
    void (*spoil)(kvjit_plan_options&, kvjit_executor&);
    const char* argument;
};

constexpr OptionMisuse kOptionMisuses[] = {
    {"check level below 0", [](kvjit_plan_options& o, kvjit_executor&) { o.check_level = -1; }, "check_level"},
    {"more threads than a pool has", [](kvjit_plan_options& o, kvjit_executor&) { o.num_threads = 1025; },
     "num_threads"},
    {"spinning for less than no time", [](kvjit_plan_options& o, kvjit_executor&) { o.spin_us = -2; }, "spin_us"},
    {"spinning for more than a second", [](kvjit_plan_options& o, kvjit_executor&) { o.spin_us = 1000001; }, "spin_us"},
    {"no such check level", [](kvjit_plan_options& o, kvjit_executor&) { o.check_level = 3; }, "check_level"},
    {"neither storing nor not", [](kvjit_plan_options& o, kvjit_executor&) { o.stores_nothing = 2; }, "stores_nothing"},
    {"executor that can't run", [](kvjit_plan_options& o, kvjit_executor& x) { o.executor = &x, x.run = nullptr; },
     "executor.run"},
    {"executor without threads", [](kvjit_plan_options& o, kvjit_executor& x) { o.executor = &x, x.concurrency = 0; },
     "executor.concurrency"},
    {"executor of a header that had no run yet",
     [](kvjit_plan_options& o, kvjit_executor& x) { o.executor = &x, x.struct_size = offsetof(kvjit_executor, run); },
     "executor.run"},
    {"executor not set up", [](kvjit_plan_options& o, kvjit_executor& x) { o.executor = &x, x.struct_size = 0; },
     "executor.struct_size"},
    {"workspace misaligned", [](kvjit_plan_options& o, kvjit_executor& x) { o.workspace = &x.struct_size + 1; },
     "workspace"},
};

TEST_CASE("bad plan options") {
    TensorsCase c(kDensePlain);
    const Handle<kvjit_kernel> kernel = kernel_of(c.spec);
    for (const OptionMisuse& misuse : kOptionMisuses) {
        CAPTURE(misuse.name);
        alignas(64) kvjit_executor executor{sizeof(kvjit_executor), 1, nullptr,
                                            [](void*, void (*)(void*, int64_t), void*, int64_t) {}};
        kvjit_plan_options options;
        kvjit_plan_options_init(&options);
        misuse.spoil(options, executor);
        kvjit_plan* made = nullptr;
        kvjit_error e = new_error();
        CHECK(kvjit_plan_create(kernel.get(), &c.batch, &options, &made, &e) == KVJIT_BAD_ARGUMENT);
        CHECK(e.argument == std::string(misuse.argument));
        CHECK(std::string(e.message).find(misuse.argument) != std::string::npos);
        CHECK(made == nullptr);
    }
}

}  // namespace
}  // namespace kvjit::test

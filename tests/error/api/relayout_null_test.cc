// Relayouts: wrong functions, null pointers, nothing to do, specs that go together badly.
#include <string>
#include <string_view>

#include "relayout_misuse.h"
#include "tensors_misuse.h"

namespace kvjit::test {
namespace {

void expect_says(const kvjit_error& error, kvjit_status status, const char* argument, std::string_view part) {
    CHECK(error.status == status);
    CHECK(error.argument == std::string(argument));
    CHECK_MESSAGE(std::string(error.message).find(part) != std::string::npos, std::string(error.message));
}

TEST_CASE("relayouts: what is wrong for a kernel or a plan names the function that is right") {
    RelayoutCase c(kPages, kBlocks);
    const Handle<kvjit_kernel> right = kernel_of(c.spec()), wrong = kernel_of(c.from.spec);
    kvjit_plan* made = nullptr;
    kvjit_error e = new_error();
    CHECK(kvjit_plan_create(right.get(), &c.from.batch, nullptr, &made, &e) == KVJIT_BAD_ARGUMENT);
    expect_says(e, KVJIT_BAD_ARGUMENT, "kernel", "kvjit_relayout_plan_create");
    CHECK(kvjit_relayout_plan_create(wrong.get(), &c.relayout, nullptr, &made, &e) == KVJIT_BAD_ARGUMENT);
    expect_says(e, KVJIT_BAD_ARGUMENT, "kernel", "KeyValueCache");
    CHECK(std::string(e.message).find("kvjit_plan_create") != std::string::npos);
    CHECK(made == nullptr);

    const auto before = c.snapshot();
    const Handle<kvjit_plan> plan = c.plan();
    CHECK(kvjit_run(plan.get(), &c.read, 0, &e) == KVJIT_BAD_ARGUMENT);
    expect_says(e, KVJIT_BAD_ARGUMENT, "plan", "kvjit_relayout_run");
    TensorsCase other(kDensePlain);
    const Handle<kvjit_plan> dense = plan_of(other);
    CHECK(c.run(dense.get(), &e) == KVJIT_BAD_ARGUMENT);
    expect_says(e, KVJIT_BAD_ARGUMENT, "plan", "kvjit_run");
    CHECK(c.snapshot() == before);
}

TEST_CASE("relayouts: null arguments") {
    RelayoutCase c(kPages, kBlocks);
    const Handle<kvjit_kernel> kernel = kernel_of(c.spec());
    const Handle<kvjit_plan> plan = c.plan();
    kvjit_plan* made = nullptr;
    kvjit_spec spec;
    kvjit_error e = new_error();
    const auto expect_null = [&](kvjit_status status, const char* argument) {
        CHECK(status == KVJIT_BAD_ARGUMENT);
        expect_says(e, KVJIT_BAD_ARGUMENT, argument, argument);
    };
    expect_null(kvjit_relayout_spec(nullptr, &c.to.spec, &spec, &e), "from");
    expect_null(kvjit_relayout_spec(&c.from.spec, nullptr, &spec, &e), "to");
    expect_null(kvjit_relayout_spec(&c.from.spec, &c.to.spec, nullptr, &e), "result");
    expect_null(kvjit_relayout_plan_create(nullptr, &c.relayout, nullptr, &made, &e), "kernel");
    expect_null(kvjit_relayout_plan_create(kernel.get(), nullptr, nullptr, &made, &e), "relayout");
    expect_null(kvjit_relayout_plan_create(kernel.get(), &c.relayout, nullptr, nullptr, &e), "plan");
    expect_null(kvjit_relayout_run(nullptr, &c.read, 0, &c.written, 0, &e), "plan");
    expect_null(kvjit_relayout_run(plan.get(), nullptr, 0, &c.written, 0, &e), "from");
    expect_null(kvjit_relayout_run(plan.get(), &c.read, 0, nullptr, 0, &e), "to");
    c.relayout.to = nullptr;
    expect_null(kvjit_relayout_plan_create(kernel.get(), &c.relayout, nullptr, &made, &e), "to");
    c.relayout.from = nullptr;
    expect_null(kvjit_relayout_plan_create(kernel.get(), &c.relayout, nullptr, &made, &e), "from");
    CHECK(made == nullptr);
}

TEST_CASE("relayouts: no sequences, and sequences without tokens, write nothing") {
    RelayoutCase none(kPages, kBlocks), empty(kPages, kBlocks);
    none.from.batch.batch_size = none.to.batch.batch_size = 0;
    none.from.batch.seqstarts = none.from.batch.kvstarts = none.to.batch.seqstarts = nullptr;
    empty.from.set_lengths({0, 0, 0}, {6, 3, 9});
    empty.to.set_lengths({0, 0, 0}, {0, 0, 0});
    for (RelayoutCase* c : {&none, &empty}) {
        const Handle<kvjit_plan> plan = c->plan();
        const auto before = c->snapshot();
        CHECK(c->run(plan.get(), nullptr) == KVJIT_OK);
        CHECK(c->snapshot() == before);
    }
    kvjit_tensors_init(&none.read);
    kvjit_tensors_init(&none.written);
    CHECK(none.run(none.plan().get(), nullptr) == KVJIT_OK);
}

// ---- Specs ---------------------------------------------------------------------------------------------------------

TEST_CASE("relayouts: specs that go together badly") {
    struct Case {
        const char *from, *to, *argument, *says;
    };
    const Case cases[] = {
        {"op=KeyValueCache,head_dim=64", "op=KeyValueCache,head_dim=128", "head_dim", "64"},
        {"op=KeyValueCache", "op=KeyValueCache,starts_type=i32", "starts_type", "i64"},
        {"op=MultiHeadAttention", "op=KeyValueCache", "from", "MultiHeadAttention"},
        {"op=KeyValueCache", "op=Merge", "to", "Merge"},
        {"op=KeyValueCache", "op=Relayout", "to", "Relayout"},
        {"op=KeyValueCache,t1=i8", "op=KeyValueCache,t1=f16", "to_t2", "i8"},
    };
    for (const Case& misuse : cases) {
        CAPTURE(misuse.from);
        CAPTURE(misuse.to);
        kvjit_spec from, to, result;
        kvjit_error e = new_error();
        REQUIRE(kvjit_spec_parse(misuse.from, &from, &e) == KVJIT_OK);
        REQUIRE(kvjit_spec_parse(misuse.to, &to, &e) == KVJIT_OK);
        kvjit_spec_init(&result);
        result.head_dim = 72;
        CHECK(kvjit_relayout_spec(&from, &to, &result, &e) == KVJIT_BAD_SPEC);
        expect_says(e, KVJIT_BAD_SPEC, misuse.argument, misuse.says);
        CHECK(result.head_dim == 72);
    }
    kvjit_spec good, bad, result;
    kvjit_spec_init(&good);
    kvjit_spec_init(&bad);
    bad.head_dim = 7;
    kvjit_error e = new_error();
    CHECK(kvjit_relayout_spec(&bad, &good, &result, &e) == KVJIT_BAD_SPEC);
    expect_says(e, KVJIT_BAD_SPEC, "head_dim", "7");
}

}  // namespace
}  // namespace kvjit::test

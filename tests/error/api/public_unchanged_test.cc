// A refused call says why through kvjit_error, and changes no byte of any tensor.
#include "batch_misuse.h"
#include "public_call.h"
#include "tensors_misuse.h"

namespace kvjit::test {
namespace {

TEST_CASE("a refused plan hands out no handle") {
    for (const auto& misuses :
         {scalar_misuses, pointer_misuses, table_misuses, starts_misuses, entry_misuses, shared_slot_misuses,
          block_outline_misuses, block_row_misuses, block_entry_misuses, shared_block_misuses}) {
        for (const BatchMisuse& misuse : misuses) {
            CAPTURE(misuse.name);
            BatchCase c(misuse.spec);
            misuse.spoil(c);
            Handle<kvjit_plan> plan;
            kvjit_error error = new_error();
            const kvjit_status status = try_plan(c, &plan, &error);
            expect_error(status, error, misuse.want);
        }
    }
}

/// The plan of each spec that a table uses is made once a misuse; its images are compiled once a spec.
void expect_unchanged(std::span<const TensorsMisuse> misuses) {
    for (const TensorsMisuse& misuse : misuses) {
        CAPTURE(misuse.name);
        TensorsCase c(misuse.spec);
        misuse.spoil(c);
        const Handle<kvjit_plan> plan = plan_of(c);
        const auto before = c.snapshot();
        kvjit_error error = new_error();
        const kvjit_status status = kvjit_run(plan.get(), &c.tensors, c.layer_idx, &error);
        expect_error(status, error, misuse.want);
        CHECK(c.snapshot() == before);
    }
}

TEST_CASE("a refused run changes no byte: presence") {
    expect_unchanged(missing_tensors);
}
TEST_CASE("a refused run changes no byte: unwanted tensors") {
    expect_unchanged(unwanted_tensors);
}
TEST_CASE("a refused run changes no byte: overlaps") {
    expect_unchanged(overlapping_tensors);
}
TEST_CASE("a refused run changes no byte: layers") {
    expect_unchanged(layer_misuses);
}
TEST_CASE("a refused run changes no byte: types") {
    expect_unchanged(type_misuses);
}
TEST_CASE("a refused run changes no byte: extents") {
    expect_unchanged(extent_misuses);
}
TEST_CASE("a refused run changes no byte: pointers") {
    expect_unchanged(tensor_pointer_misuses);
}
TEST_CASE("a refused run changes no byte: strides") {
    expect_unchanged(stride_misuses);
}
TEST_CASE("a refused run changes no byte: caches apart") {
    expect_unchanged(cache_tensor_misuses);
}

TEST_CASE("the legal cases behind the misuses run, and do change bytes") {
    for (const std::string_view spec : {kAttend, kAttendBlocks, kAttendApart, kAttendPointers, kStore4, kStorePlain,
                                        kDensePlain, kDenseMask2, kDenseMask3, kMergeParts}) {
        CAPTURE(spec);
        TensorsCase c(spec);
        const Handle<kvjit_plan> plan = plan_of(c);
        const auto before = c.snapshot();
        kvjit_error error = new_error();
        const kvjit_status status = kvjit_run(plan.get(), &c.tensors, c.layer_idx, &error);
        CHECK_MESSAGE(status == KVJIT_OK, std::string(error.message));
        CHECK(c.snapshot() != before);
    }
}

TEST_CASE("a plan goes on after a refused run") {
    TensorsCase c(kAttend);
    const Handle<kvjit_plan> plan = plan_of(c);
    CHECK(kvjit_run(plan.get(), &c.tensors, 2, nullptr) == KVJIT_BAD_ARGUMENT);
    CHECK(kvjit_run(plan.get(), &c.tensors, 1, nullptr) == KVJIT_OK);
}

struct Nothing {
    std::string_view name;
    void (*leave)(TensorsCase&);
};

constexpr Nothing kNothing[] = {
    {"no sequences", [](TensorsCase& c) { c.batch.batch_size = 0; }},
    {"no sequences, null arrays",
     [](TensorsCase& c) {
         c.batch.batch_size = 0;
         c.batch.seqstarts = c.batch.kvstarts = c.batch.start_pos = nullptr;
         c.batch.cachestarts = {};
     }},
    {"sequences without tokens", [](TensorsCase& c) { c.set_lengths({0, 0, 0}, {0, 0, 0}); }},
};

TEST_CASE("calls without sequences or without tokens write nothing") {
    for (const Nothing& nothing : kNothing) {
        for (const std::string_view spec : {kAttend, kAttendBlocks, kStore4, kDensePlain, kMergeParts}) {
            CAPTURE(nothing.name);
            CAPTURE(spec);
            TensorsCase c(spec);
            nothing.leave(c);
            const Handle<kvjit_plan> plan = plan_of(c);
            const auto before = c.snapshot();
            CHECK(kvjit_run(plan.get(), &c.tensors, c.layer_idx, nullptr) == KVJIT_OK);
            CHECK(c.snapshot() == before);
        }
    }
}

TEST_CASE("no sequences, no tensors") {
    TensorsCase c(kAttend);
    c.batch.batch_size = 0;
    const Handle<kvjit_plan> plan = plan_of(c);
    kvjit_tensors none;
    kvjit_tensors_init(&none);
    CHECK(kvjit_run(plan.get(), &none, 0, nullptr) == KVJIT_OK);
}

}  // namespace
}  // namespace kvjit::test

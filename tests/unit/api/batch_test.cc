// Arrays of a batch that know their length and type.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "step.h"

namespace {

using kvjit::Batch;
using kvjit::Indices;
using kvjit::test::Step;

using Numbers = std::vector<std::int64_t>;

const Numbers kOne(1), kTwo(2), kThree(3), kFour(4);

void check_refused(const Batch& batch, kvjit_status status, const char* argument, std::int64_t value,
                   std::int64_t limit) {
    const auto refused = Step::kernel().plan(batch);
    REQUIRE(!refused);
    CHECK(refused.error().status() == status);
    CHECK(refused.error().argument() == std::string(argument));
    CHECK(refused.error().value() == value);
    CHECK(refused.error().limit() == limit);
}

}  // namespace

TEST_CASE("seqstarts make the batch_size") {
    Batch batch;
    batch.set_seqstarts(kFour);
    CHECK(batch.batch_size == 3);
    CHECK(batch.seqstarts == kFour.data());
    const std::int32_t starts[] = {0, 1};
    batch.set_seqstarts(starts);
    CHECK(batch.batch_size == 1);
    CHECK(batch.seqstarts == starts);
}

TEST_CASE("an array that doesn't fit batch_size is refused, in whatever order they came") {
    const struct {
        const char* name;
        Batch& (Batch::*set)(Indices);
        std::int64_t fits;
    } arrays[] = {{"kvstarts", &Batch::set_kvstarts, 3},   {"start_pos", &Batch::set_start_pos, 2},
                  {"kvlens", &Batch::set_kvlens, 2},       {"last_page_len", &Batch::set_last_page_len, 2},
                  {"rowstarts", &Batch::set_rowstarts, 3}, {"row_index", &Batch::set_row_index, 2}};
    for (const auto& array : arrays) {
        INFO(array.name);
        for (const auto* given : {&kOne, &kTwo, &kThree, &kFour}) {
            Batch before, after;
            (before.set_seqstarts(kThree).*array.set)(*given);
            (after.*array.set)(*given).set_seqstarts(kThree);
            const auto length = static_cast<std::int64_t>(given->size());
            kvjit::detail::StartsType any(KVJIT_AUTO);
            CHECK(before.check(any).has_value() == (length == array.fits));
            if (length == array.fits) continue;
            check_refused(before, KVJIT_BAD_SHAPE, array.name, length, array.fits);
            check_refused(after, KVJIT_BAD_SHAPE, array.name, length, array.fits);
        }
    }
}

TEST_CASE("a batch_size that is set afterwards is held against the arrays") {
    Step step;
    step.batch.batch_size = 2;
    check_refused(step.batch, KVJIT_BAD_SHAPE, "seqstarts", 2, 3);
    const std::vector<std::int64_t> none;
    check_refused(Batch().set_seqstarts(none), KVJIT_BAD_ARGUMENT, "batch_size", -1, 0);
}

TEST_CASE("numbers of sequences that are none are refused as such") {
    Step step;
    step.batch.batch_size = INT64_MAX;
    check_refused(step.batch, KVJIT_BAD_SHAPE, "seqstarts", 2, INT64_MAX);
    step.batch.batch_size = -1;
    check_refused(step.batch, KVJIT_BAD_ARGUMENT, "batch_size", -1, 0);
}

TEST_CASE("a batch without sequences has arrays without elements") {
    Step step;
    const std::vector<std::int64_t> none;
    step.batch.set_seqstarts(kOne).set_kvlens(none).set_start_pos(none).kvstarts = nullptr;
    step.batch.cachestarts = kvjit::Tensor(none, {0, 2});
    CHECK(Step::kernel().plan(step.batch));
}

TEST_CASE("elements are of the spec's starts_type") {
    Step step;
    const std::vector<std::int32_t> start_pos{2};
    step.batch.set_start_pos(start_pos);
    check_refused(step.batch, KVJIT_BAD_DTYPE, "start_pos", KVJIT_I32, KVJIT_I64);
    const kvjit::Kernel kernel = Step::kernel();
    const kvjit::Kernel copy = kernel;
    CHECK(copy.plan(step.batch).error().status() == KVJIT_BAD_DTYPE);
}

TEST_CASE("where nobody knows the starts_type, all elements have seqstarts'") {
    Step step;
    const kvjit::Kernel kernel(kvjit_kernel_retain(Step::kernel().get()));
    CHECK(kernel.plan(step.batch));
    const std::vector<std::int32_t> start_pos{2};
    step.batch.set_start_pos(start_pos);
    const auto refused = kernel.plan(step.batch);
    REQUIRE(!refused);
    CHECK(refused.error().status() == KVJIT_BAD_DTYPE);
    CHECK(refused.error().message() == std::string("start_pos has elements of int32; seqstarts has int64"));
}

TEST_CASE("a relayout's batches have one type of elements") {
    const auto spec = kvjit::KernelSpec::parse(Step::kSpec).value();
    const auto known = kvjit::Engine::create()->kernel(kvjit::KernelSpec::relayout(spec, spec).value()).value();
    const kvjit::Kernel kernel(kvjit_kernel_retain(known.get()));
    Step from, to;
    const std::vector<std::int32_t> seqstarts{0, 1}, kvstarts{0, 3}, start_pos{2};
    to.batch.set_seqstarts(seqstarts).set_kvstarts(kvstarts).set_start_pos(start_pos);
    const auto refused = kernel.plan(kvjit::Relayout(from.batch, to.batch));
    REQUIRE(!refused);
    CHECK(refused.error().message() == std::string("to.seqstarts has elements of int32; from.seqstarts has int64"));
}

TEST_CASE("tables have extents, or one axis, and as many entries") {
    const auto view = [](const kvjit_tensor& table) { return Numbers(table.shape, table.shape + table.rank); };
    Batch batch;
    batch.set_cachestarts(kFour, {2, 2}).set_scalestarts(kFour, {1, 2, 2}).set_store_slots(kThree);
    CHECK(batch.cachestarts.data == kFour.data());
    CHECK(batch.cachestarts.dtype == KVJIT_I64);
    CHECK(view(batch.cachestarts) == Numbers{2, 2});
    CHECK(view(batch.scalestarts) == Numbers{1, 2, 2});
    CHECK(view(batch.store_slots) == Numbers{3});
    const std::vector<std::int32_t> narrow(4);
    CHECK(batch.set_cachestarts(narrow).cachestarts.dtype == KVJIT_I32);
    const struct {
        const char* name;
        Batch& (Batch::*set)(Indices, kvjit::detail::Extents);
    } tables[] = {{"cachestarts", &Batch::set_cachestarts},
                  {"scalestarts", &Batch::set_scalestarts},
                  {"store_slots", &Batch::set_store_slots}};
    for (const auto& table : tables) {
        Step step;
        (step.batch.*table.set)(kFour, {2, 3});
        check_refused(step.batch, KVJIT_BAD_SHAPE, table.name, 4, 6);
    }
}

TEST_CASE("a host_batch is held against its arrays, before its target is asked") {
    Step step;
    const auto refused = [&](const Batch& host, kvjit_status status, const char* argument, std::int64_t value) {
        const auto result = Step::kernel().plan(step.batch, kvjit::PlanOptions().set_host_batch(host));
        REQUIRE(!result);
        CHECK(result.error().status() == status);
        CHECK(result.error().argument() == std::string(argument));
        CHECK(result.error().value() == value);
    };
    Step lengths, types, table, mended;
    const std::vector<std::int32_t> start_pos{2};
    refused(lengths.batch.set_kvstarts(kOne), KVJIT_BAD_SHAPE, "host_batch.kvstarts", 1);
    refused(types.batch.set_start_pos(start_pos), KVJIT_BAD_DTYPE, "host_batch.start_pos", KVJIT_I32);
    refused(table.batch.set_cachestarts(kTwo, {1, 3}), KVJIT_BAD_SHAPE, "host_batch.cachestarts", 2);
    mended.batch.set_cachestarts(kTwo, {1, 3}).cachestarts.shape[1] = 2;
    refused(mended.batch, KVJIT_BAD_ARGUMENT, "host_batch.cachestarts.reserved", 2);
    refused(step.batch, KVJIT_BAD_ARGUMENT, "host_batch", 0);  // a CPU has no use for it
}

TEST_CASE("a host_batch that is no Batch, or was replaced, is the library's to check") {
    Step step, wrong;
    wrong.batch.set_kvstarts(kOne);
    kvjit::PlanOptions options;
    const kvjit_batch* raw = options.set_host_batch(wrong.batch).host_batch;
    CHECK(raw == &wrong.batch);
    const kvjit_plan_options copied = options;
    for (const kvjit::PlanOptions& unknown : {kvjit::PlanOptions(copied), [&] {
                                                  kvjit::PlanOptions replaced = options;
                                                  replaced.host_batch = &step.batch;
                                                  return replaced;
                                              }()}) {
        CHECK(Step::kernel().plan(step.batch, unknown).error().argument() == std::string("host_batch"));
    }
    options.host_batch = nullptr;
    CHECK(Step::kernel().plan(step.batch, options));
    CHECK(Step::kernel().plan(static_cast<const kvjit_batch&>(step.batch), kvjit_plan_options(options)));
}

TEST_CASE("of a pointer that is set by hand nobody knows the length") {
    Step step;
    step.batch.set_kvstarts(kFour);
    step.batch.kvstarts = step.kvstarts.data();
    CHECK(Step::kernel().plan(step.batch));
}

TEST_CASE("a relayout's batches are held against their arrays") {
    const auto spec = kvjit::KernelSpec::parse(Step::kSpec).value();
    const auto kernel = kvjit::Engine::create()->kernel(kvjit::KernelSpec::relayout(spec, spec).value()).value();
    Step right, wrong;
    wrong.batch.set_start_pos(kTwo);
    const auto from = kernel.plan(kvjit::Relayout(wrong.batch, right.batch));
    const auto to = kernel.plan(kvjit::Relayout(right.batch, wrong.batch));
    CHECK(from.error().argument() == std::string("from.start_pos"));
    CHECK(to.error().argument() == std::string("to.start_pos"));
    CHECK(kernel.plan(kvjit::Relayout(right.batch, right.batch)));
    kvjit::Relayout replaced(wrong.batch, wrong.batch);
    replaced.from = replaced.to = &right.batch;
    CHECK(kernel.plan(replaced));
}

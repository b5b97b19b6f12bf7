// What goes wrong on the device, or before, leaves no trace.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "gpu/call.h"
#include "gpu/unchanged_memory.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kFarAway = 1'000'000;

/// What a step's arrays hold before any run.
Written untouched(Step& step) {
    step.reset();
    return step.written();
}

TEST_SUITE_BEGIN("any machine");

TEST_CASE("a bad table is found on the device, and nothing is written until that has been said") {
    for (const char* spec : {kInt8, kInt4, kF16Blocks, kF32}) {
        for (const std::int64_t new_tokens : {1, 20}) {
            CAPTURE(spec);
            CAPTURE(new_tokens);
            Step step(machine(), spec, {.new_tokens = new_tokens});
            const MachineStream stream(machine());
            Plan plan = plan_for(step, checked_options(stream.get()));
            const std::int64_t entry = step.problem().cachestarts[0];
            const Written before = untouched(step);

            step.set_entry(0, 0, kFarAway);
            run(plan, step);
            run(plan, step);
            const auto found = plan.synchronize();
            REQUIRE(!found);
            CHECK(found.error().status() == KVJIT_BAD_INDEX);
            CHECK(std::string(found.error().argument()) == "cachestarts");
            CHECK(found.error().value() == kFarAway);
            CHECK(found.error().sequence() == 0);
            CHECK(step.written() == before);

            step.set_entry(0, 0, entry);
            run(plan, step);
            expect_done(plan.synchronize());
            CHECK(step.judge(step.written()) == "");
        }
    }
}

TEST_CASE("after a fault a good run in the same breath writes nothing either") {
    Step step(machine(), kInt8, {});
    Plan plan = plan_for(step, checked_options());
    const std::int64_t entry = step.problem().cachestarts[0];
    const Written before = untouched(step);
    step.set_entry(0, 0, -2);
    run(plan, step);
    machine().finish();
    step.set_entry(0, 0, entry);
    run(plan, step);
    const auto found = plan.synchronize();
    REQUIRE(!found);
    CHECK(found.error().value() == -2);
    CHECK(step.written() == before);
}

/// The number that a plan's description has behind `name`.
std::int64_t described(const Plan& plan, const std::string& name) {
    const std::string text = plan.describe();
    const std::size_t at = text.find("\n" + name + ": ");
    REQUIRE(at != std::string::npos);
    return std::stoll(text.substr(at + name.size() + 3));
}

constexpr char kOneKeyPages[] =
    "op=MultiHeadCacheAttention,head_dim=8,group=1,t1=f32,cache_mode=page_table,page_size=1,layout=TL2HD";

/// Entries that all threads of the check together take in a turn.
std::int64_t entries_a_turn() {
    constexpr std::int64_t kThreads = 256;  // of the check's blocks, of which a multiprocessor has one
    const Step step(machine(), kOneKeyPages, {});
    return described(plan_for(step, checked_options()), "multiprocessors") * kThreads;
}

/// A bad entry p of sequence b is found, and nothing is written.
void check_found(Step& step, Plan& plan, const Written& before, std::int64_t b, std::int64_t p) {
    CAPTURE(b);
    CAPTURE(p);
    const std::int64_t entry = step.set_entry(b, p, kFarAway + p);
    run(plan, step);
    const auto found = plan.synchronize();
    REQUIRE(!found);
    CHECK(found.error().value() == kFarAway + p);
    CHECK(found.error().sequence() == b);
    CHECK(step.written() == before);
    step.set_entry(b, p, entry);
}

TEST_CASE("a bad entry is found wherever it stands in a row that all threads together take several turns for") {
    const std::int64_t turn = entries_a_turn(), keys = 3 * turn + 5;
    Step step(machine(), kOneKeyPages, {.sequences = 1, .keys = keys});
    Plan plan = plan_for(step, checked_options());
    const Written before = untouched(step);
    // The ends of each turn, and some in the middle of turns.
    for (const std::int64_t p : {turn - 1, turn, 2 * turn - 1, 2 * turn, 3 * turn - 1, 3 * turn, keys - 1, turn + 77,
                                 2 * turn + 331, turn + turn / 2 + 19}) {
        check_found(step, plan, before, 0, p);
    }
    run(plan, step);
    expect_done(plan.synchronize());
}

TEST_CASE("a bad entry is found in each of the sequences in which a thread has a turn") {
    // The first sequence takes a turn of all threads.
    Step step(machine(), kOneKeyPages, {.sequences = 4, .keys = entries_a_turn()});
    Plan plan = plan_for(step, checked_options());
    const Written before = untouched(step);
    const std::vector<std::int64_t> starts = step.problem().kvstarts;
    for (std::size_t b = 0; b + 1 < starts.size(); ++b) {
        const std::int64_t keys = starts[b + 1] - starts[b];
        REQUIRE(keys > 1);
        for (const std::int64_t p : {std::int64_t{0}, keys - 1})
            check_found(step, plan, before, static_cast<std::int64_t>(b), p);
    }
    run(plan, step);
    expect_done(plan.synchronize());
}

/// Something that kvjit has to refuse, and with what.
struct Refusal {
    const char* what;
    kvjit_status status;
    std::function<Error()> call;
};

template <class T>
Error error_of(const Result<T>& result) {
    return result ? Error() : result.error();
}

std::vector<Refusal> refusals(Step& step, Plan& plan) {
    const auto planned = [&step](auto change) {
        return [&step, change] {
            kvjit_batch batch = step.batch();
            PlanOptions options = checked_options();
            change(batch, options);
            return error_of(kernel_for(step).plan(batch, options));
        };
    };
    const auto ran = [&step, &plan](auto change) {
        return [&step, &plan, change] {
            kvjit_tensors tensors = step.tensors();
            change(tensors);
            return error_of(plan.run(tensors, step.problem().layer));
        };
    };
    return {
        {"split_keys", KVJIT_BAD_ARGUMENT, planned([](kvjit_batch&, PlanOptions& o) { o.split_keys = 65; })},
        {"check_level", KVJIT_BAD_ARGUMENT, planned([](kvjit_batch&, PlanOptions& o) { o.check_level = 7; })},
        {"threads", KVJIT_BAD_ARGUMENT, planned([](kvjit_batch&, PlanOptions& o) { o.num_threads = 2; })},
        {"workspace", KVJIT_BAD_ARGUMENT, planned([&step](kvjit_batch& b, PlanOptions& o) {
             o.workspace = b.cachestarts.data;
             o.workspace_bytes = 1;
         })},
        {"heads", KVJIT_BAD_ARGUMENT, planned([](kvjit_batch& b, PlanOptions&) { b.num_heads += 1; })},
        {"bounds", KVJIT_BAD_ARGUMENT, planned([](kvjit_batch& b, PlanOptions&) { b.max_kvlen = 0; })},
        {"no query", KVJIT_BAD_ARGUMENT, ran([](kvjit_tensors& t) { t.query.data = nullptr; })},
        {"type", KVJIT_BAD_DTYPE, ran([](kvjit_tensors& t) { t.query.dtype = KVJIT_I8; })},
        {"shape", KVJIT_BAD_SHAPE, ran([](kvjit_tensors& t) { t.cache.shape[4] += 1; })},
        {"alignment", KVJIT_BAD_ARGUMENT,
         ran([](kvjit_tensors& t) { t.cache.data = static_cast<char*>(t.cache.data) + 8; })},
        {"layer", KVJIT_BAD_ARGUMENT, [&step, &plan] { return error_of(plan.run(step.tensors(), 99)); }},
        {"table", KVJIT_BAD_INDEX,
         [&step, &plan] {
             const std::int64_t entry = step.problem().cachestarts[0];
             step.set_entry(0, 0, kFarAway);
             run(plan, step);
             const Error found = error_of(plan.synchronize());
             step.set_entry(0, 0, entry);
             return found;
         }},
    };
}

TEST_CASE("refused calls write nothing and leak nothing") {
    Step step(machine(), kInt8, {});
    Plan plan = plan_for(step, checked_options());
    const Written before = untouched(step);
    const auto refuse_all = [&] {
        for (const Refusal& refusal : refusals(step, plan)) {
            CAPTURE(refusal.what);
            const Error error = refusal.call();
            CHECK(std::string(kvjit_status_name(error.status())) == std::string(kvjit_status_name(refusal.status)));
        }
    };
    refuse_all();
    CHECK(memory_is_unchanged([&] {
        for (int i = 0; i < 9; ++i) refuse_all();
    }));
    CHECK(step.written() == before);
}

TEST_SUITE_END();

}  // namespace
}  // namespace kvjit::test

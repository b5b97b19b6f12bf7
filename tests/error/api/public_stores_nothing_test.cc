// Plans that store nothing, through kvjit.h: what only they take, what they refuse, and what they need no compiler for.
#include <cstddef>
#include <string>

#include "batch_misuse.h"
#include "public_call.h"
#include "tensors_misuse.h"

namespace kvjit::test {
namespace {

kvjit_plan_options storing_nothing() {
    kvjit_plan_options options;
    kvjit_plan_options_init(&options);
    options.num_threads = 1;
    options.stores_nothing = 1;
    return options;
}

/// Requires that the batch is accepted.
Handle<kvjit_plan> reader_of(const BatchCase& c) {
    const kvjit_plan_options options = storing_nothing();
    kvjit_plan* plan = nullptr;
    kvjit_error error = new_error();
    const kvjit_status status = kvjit_plan_create(kernel_of(c.spec).get(), &c.batch, &options, &plan, &error);
    REQUIRE_MESSAGE(status == KVJIT_OK, std::string(error.message));
    return Handle<kvjit_plan>(plan);
}

TEST_CASE("what only stores need is not asked of a plan that stores nothing; all else is") {
    for (const auto& misuses : {pointer_misuses, starts_misuses, entry_misuses, shared_slot_misuses,
                                block_outline_misuses, block_row_misuses, block_entry_misuses, shared_block_misuses}) {
        for (const BatchMisuse& misuse : misuses) {
            CAPTURE(misuse.name);
            BatchCase c(misuse.spec);
            misuse.spoil(c);
            const kvjit_plan_options options = storing_nothing();
            kvjit_plan* plan = nullptr;
            kvjit_error error = new_error();
            const kvjit_status status = kvjit_plan_create(kernel_of(c.spec).get(), &c.batch, &options, &plan, &error);
            if (misuse.of_stores) {
                CHECK_MESSAGE(status == KVJIT_OK, std::string(error.message));
            } else {
                expect_error(status, error, misuse.want);
            }
            const Handle<kvjit_plan> owner(plan);
        }
    }
}

TEST_CASE("new keys are refused, together and alone, and change no byte") {
    for (const std::string_view spec : {kAttend, kAttendBlocks, kStore4, kStorePlain}) {
        for (const bool key : {true, false}) {
            for (const bool value : {true, false}) {
                CAPTURE(spec);
                TensorsCase c(spec);
                if (!key) c.tensors.current_key = {};
                if (!value) c.tensors.current_value = {};
                const Handle<kvjit_plan> plan = reader_of(c);
                const auto before = c.snapshot();
                kvjit_error error = new_error();
                const kvjit_status status = kvjit_run(plan.get(), &c.tensors, c.layer_idx, &error);
                if (!key && !value) {
                    CHECK(status == KVJIT_OK);
                    CHECK(c.snapshot() != before);
                    continue;
                }
                expect_error(status, error, bad_argument(key ? "current_key" : "current_value"));
                CHECK(std::string(error.message).ends_with(" is given; the plan's options.stores_nothing is 1"));
                CHECK(c.snapshot() == before);
            }
        }
    }
}

TEST_CASE("a program whose header lacks the option has plans that may store") {
    BatchCase c(kTokens);
    c.table[17] = c.table[5];
    kvjit_plan_options options = storing_nothing();
    options.struct_size = offsetof(kvjit_plan_options, stores_nothing);
    kvjit_plan* plan = nullptr;
    kvjit_error error = new_error();
    const kvjit_status status = kvjit_plan_create(kernel_of(c.spec).get(), &c.batch, &options, &plan, &error);
    expect_error(status, error, bad_index("cachestarts", 42, 0, 2));
    CHECK(plan == nullptr);
}

TEST_CASE("operators without a cache store nothing either way") {
    for (const std::string_view spec : {kDensePlain, kMergeParts}) {
        CAPTURE(spec);
        TensorsCase c(spec);
        const Handle<kvjit_plan> plan = reader_of(c);
        CHECK(kvjit_run(plan.get(), &c.tensors, c.layer_idx, nullptr) == KVJIT_OK);
    }
}

/// Programs that an engine without a disk cache compiles for one plan.
std::int64_t compiles_for(const BatchCase& c, std::int32_t stores_nothing) {
    kvjit_engine_options in_memory;
    kvjit_engine_options_init(&in_memory);
    in_memory.cache_dir = "";
    kvjit_engine* made = nullptr;
    REQUIRE(kvjit_engine_create(&in_memory, &made, nullptr) == KVJIT_OK);
    const Handle<kvjit_engine> engine(made);
    kvjit_kernel* kernel = nullptr;
    REQUIRE(kvjit_engine_kernel(made, &c.spec, nullptr, &kernel, nullptr) == KVJIT_OK);
    const Handle<kvjit_kernel> kernel_owner(kernel);
    kvjit_plan_options options = storing_nothing();
    options.stores_nothing = stores_nothing;
    kvjit_plan* plan = nullptr;
    REQUIRE(kvjit_plan_create(kernel, &c.batch, &options, &plan, nullptr) == KVJIT_OK);
    const Handle<kvjit_plan> plan_owner(plan);
    kvjit_engine_stats stats;
    kvjit_engine_stats_init(&stats);
    kvjit_engine_get_stats(made, &stats);
    return stats.compiles;
}

TEST_CASE("no store program is compiled") {
    const BatchCase load(kStore);
    CHECK(compiles_for(load, 0) == 2);
    CHECK(compiles_for(load, 1) == 1);
    const BatchCase attend(kOffset);
    CHECK(compiles_for(attend, 0) == compiles_for(attend, 1) + 1);
}

TEST_CASE("a refusal that binds only stores says so") {
    const auto sentence = [](const char* spec, void (*spoil)(BatchCase&)) {
        BatchCase c(spec);
        spoil(c);
        Handle<kvjit_plan> plan;
        kvjit_error error = new_error();
        CHECK(try_plan(c, &plan, &error) != KVJIT_OK);
        return std::string(error.message);
    };
    CHECK(sentence(kPages, [](BatchCase& c) { c.start_pos[2] = 8; }) ==
          "start_pos[2] is 8; with 9 keys, 2 of them new, it takes 7, unless options.stores_nothing is 1 (sequence 2) "
          "[found by KVJIT_CHECK_BATCH and up]");
    CHECK(sentence(kTokens, [](BatchCase& c) { c.table[17] = c.table[5]; }) ==
          "cachestarts sends two new tokens, of sequences 0 and 2, to slot 42; each takes one of its own, unless "
          "options.stores_nothing is 1 [found by KVJIT_CHECK_FULL]");
}

}  // namespace
}  // namespace kvjit::test

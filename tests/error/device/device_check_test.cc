// Each fault in a device's index arrays is found by the check kernel, named by kvjit_plan_synchronize, and leaves every
// byte of cache and outputs as it was.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kvjit/kvjit.hpp"

namespace kvjit::test {
namespace {

constexpr std::int64_t kHeads = 2, kDim = 16, kSlots = 64, kPage = 4, kMaxPages = 4, kRows = 8, kKeyRows = 24;

const Engine& engine() {
    static const Engine made = *Engine::create();
    return made;
}

template <class T>
struct alignas(16) Row {
    T elements[kDim];
};

/// Three sequences with 1, 3 and 0 new tokens, pages of 4, every array the "device's".
struct Call {
    std::string mode;
    std::vector<std::int64_t> seqstarts = {0, 1, 4, 4};
    std::vector<std::int64_t> kvstarts = {0, 6, 13, 15};
    std::vector<std::int64_t> start_pos = {5, 4, 2};
    std::vector<std::int64_t> table;
    std::vector<std::int64_t> rowstarts;
    std::vector<std::int64_t> row_index;
    std::int64_t max_seqlen = 0, max_kvlen = 0;
    std::int64_t rows = kRows, key_rows = kKeyRows;
    std::vector<Row<float>> tokens = std::vector<Row<float>>(kRows * kHeads, Row<float>{{1, 2, 3}});
    std::vector<Row<float>> cache = std::vector<Row<float>>(kSlots * 2 * kHeads, Row<float>{{7}});
    std::vector<Row<float>> outputs = std::vector<Row<float>>(2 * kKeyRows * kHeads, Row<float>{{9}});

    explicit Call(std::string cache_mode) : mode(std::move(cache_mode)) {
        if (mode == "offset") table = {0, 16, 32};
        if (mode == "token_table") {
            for (std::int64_t t = 0; t < kKeyRows; ++t) table.push_back(t * 2);
        }
        if (mode == "page_table") table = {0, 4, -1, -1, 17, 25, -1, -1, 33, -1, -1, -1};
        if (mode == "block_table") table = {0, 1, -1, -1, 5, 6, -1, -1, 9, -1, -1, -1};
    }

    bool paged() const { return mode == "page_table" || mode == "block_table"; }
    bool blocks() const { return mode == "block_table"; }

    KernelSpec spec() const {
        const std::string layout = blocks() ? "N2LTHD" : "TL2HD";
        const std::string page = paged() ? ",page_size=" + std::to_string(kPage) : "";
        return *KernelSpec::parse("op=KeyValueCache,head_dim=16,t1=f32,cache_mode=" + mode + ",layout=" + layout +
                                  page);
    }

    Batch batch() {
        Batch batch;
        batch.batch_size = static_cast<std::int64_t>(seqstarts.size()) - 1;
        batch.num_kv_heads = kHeads;
        batch.max_tokens = blocks() ? 0 : kSlots;
        batch.num_blocks = blocks() ? kSlots / kPage : 0;
        batch.max_seqlen = max_seqlen;
        batch.max_kvlen = max_kvlen;
        batch.seqstarts = seqstarts.data();
        batch.kvstarts = kvstarts.data();
        batch.start_pos = start_pos.data();
        batch.rowstarts = rowstarts.empty() ? nullptr : rowstarts.data();
        batch.row_index = row_index.empty() ? nullptr : row_index.data();
        const auto entries = static_cast<std::int64_t>(table.size());
        batch.cachestarts = paged() && rowstarts.empty()
                                ? Tensor(table.data(), KVJIT_I64, {entries / kMaxPages, kMaxPages})
                                : Tensor(table.data(), KVJIT_I64, {entries});
        return batch;
    }

    /// The same without new keys.
    Tensors reads() {
        Tensors reads = tensors();
        reads.current_key = reads.current_value = Tensor();
        return reads;
    }

    Tensors tensors() {
        Tensors tensors;
        tensors.current_key = Tensor(tokens.data(), KVJIT_F32, {rows, kHeads, kDim});
        tensors.current_value = tensors.current_key;
        tensors.cache = blocks() ? Tensor(cache.data(), KVJIT_F32, {kSlots / kPage, 2, 1, kPage, kHeads, kDim})
                                 : Tensor(cache.data(), KVJIT_F32, {kSlots, 1, 2, kHeads, kDim});
        tensors.key = Tensor(outputs.data(), KVJIT_F32, {key_rows, kHeads, kDim});
        tensors.value = Tensor(outputs.data() + kKeyRows * kHeads, KVJIT_F32, {key_rows, kHeads, kDim});
        return tensors;
    }
};

bool same_bytes(const std::vector<Row<float>>& rows, const std::vector<Row<float>>& others) {
    return std::memcmp(rows.data(), others.data(), rows.size() * sizeof rows[0]) == 0;
}

Result<void> run(Plan& plan, Call& call) {
    if (const Result<void> ran = plan.run(call.tensors()); !ran) return ran;
    return plan.synchronize();
}

Result<Plan> plan_of(Call& call, kvjit_check_level level = KVJIT_CHECK_FULL, int stores_nothing = 0) {
    const Kernel kernel = *engine().kernel(call.spec(), *Target::cuda_emulated());
    PlanOptions options;
    options.check_level = level;
    options.stores_nothing = stores_nothing;
    return kernel.plan(call.batch(), options);
}

struct Fault {
    const char* name;
    const char* mode;
    std::function<void(Call&)> spoil;
    kvjit_status status;
    const char* argument;
    std::int64_t value, sequence;
    bool of_stores = false;  // none where nothing is stored
};

const Fault kFaults[] = {
    {"first start", "offset", [](Call& c) { c.seqstarts[0] = 1; }, KVJIT_BAD_INDEX, "seqstarts", 1, 0},
    {"falling seqstarts", "offset", [](Call& c) { c.seqstarts[3] = 3; }, KVJIT_BAD_INDEX, "seqstarts", 3, 2},
    {"falling kvstarts", "page_table", [](Call& c) { c.kvstarts[2] = 5; }, KVJIT_BAD_INDEX, "kvstarts", 5, 1},
    {"fewer keys than new tokens", "offset", [](Call& c) { c.kvstarts = {0, 6, 8, 10}; }, KVJIT_BAD_INDEX, "kvstarts",
     2, 1, true},
    {"past too short", "offset", [](Call& c) { c.start_pos[1] = 3; }, KVJIT_BAD_INDEX, "start_pos", 3, 1, true},
    {"past below 0", "offset", [](Call& c) { c.start_pos[2] = -2; }, KVJIT_BAD_INDEX, "start_pos", -2, 2, true},
    {"max_seqlen", "offset", [](Call& c) { c.max_seqlen = 2; }, KVJIT_BAD_ARGUMENT, "seqstarts", 3, 1},
    {"max_kvlen", "offset", [](Call& c) { c.max_kvlen = 6; }, KVJIT_BAD_ARGUMENT, "kvstarts", 7, 1},
    {"too few rows", "offset", [](Call& c) { c.rows = 3; }, KVJIT_BAD_SHAPE, "seqstarts", 4, 1, true},
    {"too few key rows", "offset", [](Call& c) { c.key_rows = 14; }, KVJIT_BAD_SHAPE, "kvstarts", 15, 2},
    {"offset below 0", "offset", [](Call& c) { c.table[1] = -20; }, KVJIT_BAD_INDEX, "cachestarts", -20, 1},
    {"offset past the end", "offset", [](Call& c) { c.table[2] = kSlots - 1; }, KVJIT_BAD_INDEX, "cachestarts",
     kSlots - 1, 2},
    {"token past the end", "token_table", [](Call& c) { c.table[14] = kSlots; }, KVJIT_BAD_INDEX, "cachestarts", kSlots,
     2},
    {"page past the end", "page_table", [](Call& c) { c.table[4] = kSlots - 3; }, KVJIT_BAD_INDEX, "cachestarts",
     kSlots - 3, 1},
    {"huge page", "page_table", [](Call& c) { c.table[5] = std::int64_t{1} << 62; }, KVJIT_BAD_INDEX, "cachestarts",
     std::int64_t{1} << 62, 1},
    {"block past the end", "block_table", [](Call& c) { c.table[8] = kSlots / kPage; }, KVJIT_BAD_INDEX, "cachestarts",
     kSlots / kPage, 2},
    {"block below 0", "block_table", [](Call& c) { c.table[0] = -7; }, KVJIT_BAD_INDEX, "cachestarts", -7, 0},
    {"row longer than the table", "page_table",
     [](Call& c) {
         c.kvstarts = {0, 6, 23, 25};
         c.start_pos[1] = 14;
         c.key_rows = kKeyRows;
         c.kvstarts[3] = 24;
         c.start_pos[2] = 1;
     },
     KVJIT_BAD_INDEX, "kvstarts", 5, 1},
    {"row_index past the table", "page_table", [](Call& c) { c.row_index = {0, 3, 1}; }, KVJIT_BAD_INDEX,
     "row_index or rowstarts", 3, 1},
    {"rowstarts past the table", "page_table", [](Call& c) { c.rowstarts = {0, 4, 13, 14}; }, KVJIT_BAD_INDEX,
     "row_index or rowstarts", 13, 2},
    {"two new tokens of one sequence", "token_table", [](Call& c) { c.table[11] = c.table[12]; }, KVJIT_BAD_INDEX,
     "cachestarts", 24, 1, true},
    {"new tokens of two sequences", "page_table", [](Call& c) { c.table[5] = 4; }, KVJIT_BAD_INDEX, "cachestarts", 4, 1,
     true},
};

TEST_CASE("a sound call passes in every mode") {
    for (const char* mode : {"offset", "token_table", "page_table", "block_table"}) {
        CAPTURE(mode);
        Call call(mode);
        Result<Plan> plan = plan_of(call);
        REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
        const Result<void> ran = run(*plan, call);
        CHECK_MESSAGE(ran.has_value(), ran.error().message());
        CHECK(!same_bytes(call.cache, Call(mode).cache));
        CHECK(!same_bytes(call.outputs, Call(mode).outputs));
    }
}

void expect_found(const Fault& fault, Call& call, const Result<void>& ran) {
    REQUIRE(!ran.has_value());
    CHECK(ran.error().status() == fault.status);
    CHECK(std::string(ran.error().argument()) == fault.argument);
    CHECK(ran.error().value() == fault.value);
    CHECK(ran.error().sequence() == fault.sequence);
    CHECK(std::string(ran.error().message()).find(std::to_string(fault.value)) != std::string::npos);
    CHECK(same_bytes(call.cache, Call(fault.mode).cache));
    CHECK(same_bytes(call.outputs, Call(fault.mode).outputs));
}

TEST_CASE("each fault is found and named, and nothing is written") {
    for (const Fault& fault : kFaults) {
        CAPTURE(fault.name);
        Call call(fault.mode);
        fault.spoil(call);
        Result<Plan> plan = plan_of(call);
        REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
        expect_found(fault, call, run(*plan, call));
    }
}

/// What sequences share, a load reads once for each.
bool loads_slots(const Call& call) {
    for (std::size_t row = 0; row < static_cast<std::size_t>(call.kvstarts.back() * kHeads); ++row) {
        if (call.outputs[row].elements[0] != 7) return false;
    }
    return true;
}

TEST_CASE("a plan that stores nothing finds what is wrong with what it reads, and only that") {
    for (const Fault& fault : kFaults) {
        CAPTURE(fault.name);
        Call call(fault.mode);
        fault.spoil(call);
        Result<Plan> plan = plan_of(call, KVJIT_CHECK_FULL, 1);
        REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
        const Result<void> queued = plan->run(call.reads());
        REQUIRE_MESSAGE(queued.has_value(), queued.error().message());
        const Result<void> ran = plan->synchronize();
        if (!fault.of_stores) {
            expect_found(fault, call, ran);
            continue;
        }
        CHECK_MESSAGE(ran.has_value(), ran.error().message());
        CHECK(loads_slots(call));
        CHECK(same_bytes(call.cache, Call(fault.mode).cache));
    }
}

TEST_CASE("a plan that stores nothing needs no start_pos, and refuses new keys") {
    for (const char* mode : {"offset", "token_table", "page_table", "block_table"}) {
        CAPTURE(mode);
        Call call(mode);
        Batch batch = call.batch();
        batch.start_pos = nullptr;
        const Kernel kernel = *engine().kernel(call.spec(), *Target::cuda_emulated());
        PlanOptions options;
        options.stores_nothing = 1;
        for (const kvjit_batch* mirror :
             {static_cast<const kvjit_batch*>(nullptr), static_cast<const kvjit_batch*>(&batch)}) {
            options.host_batch = mirror;
            Result<Plan> plan = kernel.plan(batch, options);
            REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
            const Result<void> refused = plan->run(call.tensors());
            REQUIRE(!refused.has_value());
            CHECK(std::string(refused.error().message()) ==
                  "current_key is given; the plan's options.stores_nothing is 1");
            REQUIRE(plan->run(call.reads()).has_value());
            CHECK(plan->synchronize().has_value());
            CHECK(loads_slots(call));
        }
    }
}

TEST_CASE("a mirror whose new tokens share a slot is refused, unless nothing is stored") {
    Call call("token_table");
    call.table[11] = call.table[12];
    const Batch batch = call.batch();
    const Kernel kernel = *engine().kernel(call.spec(), *Target::cuda_emulated());
    PlanOptions options;
    options.host_batch = &batch;
    const Result<Plan> refused = kernel.plan(batch, options);
    REQUIRE(!refused.has_value());
    CHECK(std::string(refused.error().argument()) == "cachestarts");
    options.stores_nothing = 1;
    CHECK(kernel.plan(batch, options).has_value());
}

TEST_CASE("a plan that stores nothing has no store program compiled") {
    Call call("offset");
    for (const int stores_nothing : {0, 1}) {
        EngineOptions in_memory;
        in_memory.cache_dir = "";
        const Engine own = *Engine::create(in_memory);
        const Kernel kernel = *own.kernel(call.spec(), *Target::cuda_emulated());
        PlanOptions options;
        options.stores_nothing = stores_nothing;
        REQUIRE(kernel.plan(call.batch(), options).has_value());
        CHECK(own.stats().compiles == 3 - stores_nothing);  // check, load and store
    }
}

std::string sentence(Call& call) {
    Plan plan = *plan_of(call);
    const Result<void> ran = run(plan, call);
    REQUIRE(!ran.has_value());
    return ran.error().message();
}

TEST_CASE("a fault's sentence tells an entry from what entries add up to") {
    Call start("offset");
    start.seqstarts[3] = 3;
    CHECK(sentence(start).starts_with(
        "seqstarts[3] is 3; starts begin at 0, may not fall and end by 2^62, the limit is 4 ("));
    Call tokens("offset");
    tokens.max_seqlen = 2;
    CHECK(sentence(tokens).starts_with("by seqstarts sequence 1 has 3 new tokens; max_seqlen is 2 ("));
    Call keys("offset");
    keys.max_kvlen = 6;
    CHECK(sentence(keys).starts_with("by kvstarts sequence 1 has 7 keys; max_kvlen is 6 ("));
    Call width("page_table");
    width.kvstarts = {0, 6, 23, 24};
    width.start_pos = {5, 14, 1};
    CHECK(sentence(width).starts_with(
        "by kvstarts sequence 1 has 5 entries of cachestarts to read; its row has room for 4 ("));
    Call entry("offset");
    entry.table[1] = -20;
    CHECK(sentence(entry).starts_with("cachestarts, entry 0 of the sequence's row, is -20; its tokens"));
    Call slots("page_table");
    slots.table[5] = 4;
    CHECK(sentence(slots).starts_with(
        "cachestarts gives new tokens of sequences 0 and 1 slot 4; each takes one of its own, unless "
        "options.stores_nothing is 1 ("));
    Call past("offset");
    past.start_pos[1] = 3;
    CHECK(sentence(past).starts_with(
        "start_pos[1] is 3; keys less new tokens make it 4, unless options.stores_nothing is 1 ("));
    Call fewer("offset");
    fewer.kvstarts = {0, 6, 8, 10};
    CHECK(
        sentence(fewer).starts_with("by kvstarts sequence 1 has 2 keys; new tokens are keys, too, so it takes at least "
                                    "3, unless options.stores_nothing is 1 ("));
}

TEST_CASE("more keys than a sequence may have are named as such") {
    Call call("offset");
    call.kvstarts = {0, 6, (std::int64_t{1} << 30) + 13, (std::int64_t{1} << 30) + 15};
    Plan plan = *plan_of(call);
    Tensors store_only = call.tensors();  // without rows for so many keys
    store_only.key = store_only.value = Tensor();
    REQUIRE(plan.run(store_only).has_value());
    const Result<void> found = plan.synchronize();
    REQUIRE(!found.has_value());
    CHECK(found.error().status() == KVJIT_BAD_INDEX);
    CHECK(std::string(found.error().message())
              .starts_with("by kvstarts sequence 1 has 1073741831 keys; a sequence has at most 1073741824 ("));
    CHECK(same_bytes(call.cache, Call("offset").cache));
}

TEST_CASE("a fault stays until it is read, and the plan works again when the array is mended") {
    Call call("page_table");
    call.table[4] = 1000;
    Plan plan = *plan_of(call);
    REQUIRE(plan.run(call.tensors()).has_value());
    call.table[4] = 17;
    REQUIRE(plan.run(call.tensors()).has_value());
    CHECK(same_bytes(call.cache, Call("page_table").cache));
    CHECK(!plan.synchronize().has_value());
    CHECK(run(plan, call).has_value());
    CHECK(!same_bytes(call.cache, Call("page_table").cache));
}

TEST_CASE("levels: BATCH looks at no entry, NONE at nothing, and no store leaves the cache") {
    Call call("page_table");
    call.table[4] = 1000;
    for (const kvjit_check_level level : {KVJIT_CHECK_BATCH, KVJIT_CHECK_NONE}) {
        CAPTURE(static_cast<int>(level));
        Result<Plan> plan = plan_of(call, level);
        REQUIRE(plan.has_value());
        Tensors store_only = call.tensors();
        store_only.key = store_only.value = Tensor();
        REQUIRE(plan->run(store_only).has_value());
        CHECK(plan->synchronize().has_value());
    }
}

}  // namespace
}  // namespace kvjit::test

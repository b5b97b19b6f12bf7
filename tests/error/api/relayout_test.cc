// Relayouts that are refused: which side and which of its arguments, what was given and what is taken; nothing changes.
#include <cstdint>
#include <string>
#include <string_view>

#include "relayout_case.h"
#include "tensors_misuse.h"

namespace kvjit::test {
namespace {

constexpr std::string_view kPages = "cache_mode=page_table,page_size=4,layout=L2HTD";
constexpr std::string_view kBlocks = "cache_mode=block_table,page_size=4,layout=N2LTHD";
constexpr std::string_view kQuantised = "cache_mode=block_table,page_size=4,layout=NL2HTD,quant_bit=8";
constexpr std::string_view kApart = "cache_mode=token_table,layout=LTHD";
constexpr std::string_view kOffset = "cache_mode=offset,layout=TL2HD";
constexpr std::string_view kPointers = "cache_mode=block_pointers,page_size=4,layout=2LTHD";
constexpr std::string_view kScaledPointers = "cache_mode=block_pointers,page_size=4,layout=2LTHD,quant_bit=8";

struct Misuse {
    std::string_view name, from, to;
    void (*spoil)(RelayoutCase&);
    Refusal want;
};

void expect_message_repeats(const kvjit_error& error) {
    const std::string message = error.message, argument = error.argument;
    CHECK_MESSAGE(message.find(argument.substr(0, argument.find('['))) != message.npos, message);
}

constexpr std::int64_t kMany = std::int64_t{1} << 40;

// ---- Numbers of kvjit_relayout and options -------------------------------------------------------------------------

constexpr Misuse kNumbers[] = {
    {"no ranks",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.from_ranks = 0; },
     {KVJIT_BAD_ARGUMENT, "from_ranks", 0, 1}},
    {"ranks below 0",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.to_ranks = -2; },
     {KVJIT_BAD_ARGUMENT, "to_ranks", -2, 1}},
    {"more ranks than counts",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.to_ranks = kMany; },
     {KVJIT_BAD_ARGUMENT, "to_ranks", kMany, 0x7fffffff}},
    {"rank below 0",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.from_rank = -1; },
     {KVJIT_BAD_ARGUMENT, "from_rank", -1, 0}},
    {"rank past its ranks",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.to_ranks = 3, c.relayout.to_rank = 3; },
     {KVJIT_BAD_ARGUMENT, "to_rank", 3, 2}},
    {"head below 0",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.from_head = -1; },
     {KVJIT_BAD_ARGUMENT, "from_head", -1, 0}},
    {"head past the heads",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.to_head = 2; },
     {KVJIT_BAD_ARGUMENT, "to_head", 2, 1}},
    {"more heads than there are",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.num_kv_heads = 3; },
     {KVJIT_BAD_ARGUMENT, "num_kv_heads", 3, 2}},
    {"heads below 0",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.num_kv_heads = -1; },
     {KVJIT_BAD_ARGUMENT, "num_kv_heads", -1, 1}},
    {"heads from the second one on",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.from_head = 1; },
     {KVJIT_BAD_ARGUMENT, "num_kv_heads", 2, 1}},
    {"heads to the second one on",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.to_head = 1, c.relayout.num_kv_heads = 2; },
     {KVJIT_BAD_ARGUMENT, "num_kv_heads", 2, 1}},
    {"heads from a number that wraps round",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.from_head = INT64_MAX, c.relayout.num_kv_heads = 2; },
     {KVJIT_BAD_ARGUMENT, "from_head", INT64_MAX, 1}},
    {"other numbers of heads",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.to.batch.num_kv_heads = 3; },
     {KVJIT_BAD_ARGUMENT, "num_kv_heads", 2, 3}},
    {"more layers than there are",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.num_layers = 3; },
     {KVJIT_BAD_ARGUMENT, "num_layers", 3, 2}},
    {"layers below 0",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.num_layers = INT64_MIN; },
     {KVJIT_BAD_ARGUMENT, "num_layers", INT64_MIN, 1}},
    {"other numbers of layers",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.to.batch.num_layers = 1; },
     {KVJIT_BAD_ARGUMENT, "num_layers", 2, 1}},
    {"a plan that stores nothing",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.options.stores_nothing = 1; },
     {KVJIT_BAD_ARGUMENT, "stores_nothing"}},
    {"a batch of the host's",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.options.host_batch = &c.to.batch; },
     {KVJIT_BAD_ARGUMENT, "host_batch"}},
    {"splits", kPages, kBlocks, [](RelayoutCase& c) { c.options.split_keys = 64; }, {KVJIT_BAD_ARGUMENT, "split_keys"}},
    {"a level that there isn't",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.options.check_level = 3; },
     {KVJIT_BAD_ARGUMENT, "check_level", 3, 2}},
};

// ---- Batches -------------------------------------------------------------------------------------------------------

constexpr Misuse kBatches[] = {
    {"other numbers of sequences",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.to.batch.batch_size = 2; },
     {KVJIT_BAD_ARGUMENT, "to.batch_size", 2, 3}},
    {"sequences below 0",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.from.batch.batch_size = -1; },
     {KVJIT_BAD_ARGUMENT, "from.batch_size", -1, 0}},
    {"no layers",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.from.batch.num_layers = 0; },
     {KVJIT_BAD_ARGUMENT, "from.num_layers", 0, 1}},
    {"query heads in place of kv heads",
     kPages,
     kBlocks,
     [](RelayoutCase& c) {
         c.from.batch.num_heads = c.from.batch.num_kv_heads;
         c.from.batch.num_kv_heads = 0;
     },
     {KVJIT_BAD_ARGUMENT, "from.num_kv_heads", 0, 1}},
    {"tokens that begin elsewhere",
     kPages,
     kBlocks,
     [](RelayoutCase& c) {
         static constexpr std::int64_t kElsewhere[] = {77, 77, 77};
         c.from.batch.start_pos = kElsewhere;
     },
     {KVJIT_BAD_INDEX, "from.start_pos", 77, 5, 0}},
    {"a misaligned start_pos",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.from.batch.start_pos = reinterpret_cast<const char*>(c.from.batch.seqstarts) + 4; },
     {KVJIT_BAD_ARGUMENT, "from.start_pos", 4, 8}},
    {"slots of its own, from",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.from.batch.store_slots = c.from.batch.cachestarts; },
     {KVJIT_BAD_ARGUMENT, "from.store_slots"}},
    {"slots of its own, to",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.to.batch.store_slots = c.to.batch.cachestarts; },
     {KVJIT_BAD_ARGUMENT, "to.store_slots"}},
    {"null starts",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.from.batch.seqstarts = nullptr; },
     {KVJIT_BAD_ARGUMENT, "from.seqstarts"}},
    {"null keys",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.to.batch.kvstarts = nullptr; },
     {KVJIT_BAD_ARGUMENT, "to.kvstarts"}},
    {"misaligned starts",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.to.batch.seqstarts = reinterpret_cast<const char*>(c.to.batch.seqstarts) + 4; },
     {KVJIT_BAD_ARGUMENT, "to.seqstarts", 4, 8}},
    {"null table",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.from.batch.cachestarts.data = nullptr; },
     {KVJIT_BAD_ARGUMENT, "from.cachestarts.data"}},
    {"a table of another type",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.to.batch.cachestarts.dtype = KVJIT_I32; },
     {KVJIT_BAD_DTYPE, "to.cachestarts.dtype", KVJIT_I32, KVJIT_I64}},
    {"starts that fall",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.from.seqstarts = {0, 4, 1, 6}, c.from.bind(); },
     {KVJIT_BAD_INDEX, "from.seqstarts", 1, 4, 1}},
    {"more tokens than keys to copy",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.from.seqstarts = {0, 1, 5, 7}, c.from.start_pos.clear(), c.from.bind(); },
     {KVJIT_BAD_INDEX, "from.seqstarts", 4, 3, 1}},
    {"more tokens than keys to write",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.to.seqstarts = {0, 1, 5, 7}, c.to.start_pos.clear(), c.to.bind(); },
     {KVJIT_BAD_INDEX, "to.kvstarts", 9, 10, 1}},
    {"other counts of tokens",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.to.set_lengths({1, 3, 1}, {6, 3, 9}); },
     {KVJIT_BAD_INDEX, "to.seqstarts", 1, 2, 2}},
    {"other counts of tokens by their ranks",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.from_ranks = 2; },
     {KVJIT_BAD_INDEX, "to.seqstarts", 1, 0, 0}},
    {"a page outside",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.from.table[6] = 62, c.from.bind(); },
     {KVJIT_BAD_INDEX, "from.cachestarts", 62, 64, 2}},
    {"a block below 0",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.to.table[1] = -5, c.to.bind(); },
     {KVJIT_BAD_INDEX, "to.cachestarts", -5, 8, 0}},
    {"a block outside",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.to.table[1] = 8, c.to.bind(); },
     {KVJIT_BAD_INDEX, "to.cachestarts", 8, 8, 0}},
    {"a row too short",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.to.set_lengths({1, 3, 2}, {6, 3, 13}); },
     {KVJIT_BAD_INDEX, "to.kvstarts", 13, 12, 2}},
    {"two tokens to one slot",
     kPages,
     kApart,
     [](RelayoutCase& c) { c.to.table[17] = c.to.table[5], c.to.bind(); },
     {KVJIT_BAD_INDEX, "to.cachestarts", 42, 0, 2}},
    {"null address",
     kPages,
     kPointers,
     [](RelayoutCase& c) { c.to.table[0] = 0, c.to.bind(); },
     {KVJIT_BAD_INDEX, "to.cachestarts", 0, 4, 0}},
    {"misaligned address",
     kPointers,
     kBlocks,
     [](RelayoutCase& c) { c.from.table[0] = 0x1002, c.from.bind(); },
     {KVJIT_BAD_INDEX, "from.cachestarts", 0x1002, 4, 0, true}},
    {"no addresses of scales",
     kPages,
     kScaledPointers,
     [](RelayoutCase& c) { c.to.batch.scalestarts = {}; },
     {KVJIT_BAD_ARGUMENT, "to.scalestarts"}},
    {"addresses of scales for none",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.to.batch.scalestarts = c.to.batch.cachestarts; },
     {KVJIT_BAD_ARGUMENT, "to.scalestarts"}},
};

/// All but what the cases above have in more than one form.
void expect_no_plan(const Misuse& misuse) {
    CAPTURE(misuse.name);
    RelayoutCase c(misuse.from, misuse.to);
    misuse.spoil(c);
    const auto before = c.snapshot();
    Handle<kvjit_plan> plan;
    kvjit_error error = new_error();
    const kvjit_status status = c.try_plan(&plan, &error);
    expect_error(status, error, misuse.want);
    expect_message_repeats(error);
    CHECK(std::string(error.message).find("stores_nothing is 1") == std::string::npos);
    CHECK(c.snapshot() == before);
}

TEST_CASE("relayouts: numbers and options that are refused") {
    for (const Misuse& misuse : kNumbers) expect_no_plan(misuse);
}

TEST_CASE("relayouts: batches that are refused, by their side") {
    for (const Misuse& misuse : kBatches) expect_no_plan(misuse);
}

// ---- Runs ----------------------------------------------------------------------------------------------------------

constexpr Misuse kRuns[] = {
    {"layer below 0",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.from_layer = -1; },
     {KVJIT_BAD_ARGUMENT, "from_layer", -1, 0}},
    {"layers past the last",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.to_layer = 1; },
     {KVJIT_BAD_ARGUMENT, "to_layer", 1, 0}},
    {"a layer past the last",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.relayout.num_layers = 1, c.from_layer = INT64_MAX; },
     {KVJIT_BAD_ARGUMENT, "from_layer", INT64_MAX, 1}},
    {"no cache to read",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.read.cache = {}; },
     {KVJIT_BAD_ARGUMENT, "from.cache"}},
    {"no cache to write",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.written.cache = {}; },
     {KVJIT_BAD_ARGUMENT, "to.cache"}},
    {"null cache",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.written.cache.data = nullptr; },
     {KVJIT_BAD_ARGUMENT, "to.cache.data"}},
    {"misaligned cache",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.read.cache.data = static_cast<char*>(c.read.cache.data) + 2; },
     {KVJIT_BAD_ARGUMENT, "from.cache.data", 2, 4}},
    {"no scales", kPages, kQuantised, [](RelayoutCase& c) { c.written.scale = {}; }, {KVJIT_BAD_ARGUMENT, "to.scale"}},
    {"scales of a cache without any",
     kQuantised,
     kBlocks,
     [](RelayoutCase& c) { c.written.scale = c.written.cache; },
     {KVJIT_BAD_ARGUMENT, "to.scale"}},
    {"no values",
     kApart,
     kBlocks,
     [](RelayoutCase& c) { c.read.value_cache = {}; },
     {KVJIT_BAD_ARGUMENT, "from.value_cache"}},
    {"one tensor where there are two",
     kPages,
     kApart,
     [](RelayoutCase& c) { c.written.cache = c.written.key_cache, c.written.key_cache = {}; },
     {KVJIT_BAD_ARGUMENT, "to.cache"}},
    {"a cache where blocks have addresses",
     kPages,
     kPointers,
     [](RelayoutCase& c) { c.written.cache = c.read.cache; },
     {KVJIT_BAD_ARGUMENT, "to.cache"}},
    {"queries",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.read.query = c.read.cache; },
     {KVJIT_BAD_ARGUMENT, "from.query"}},
    {"new keys",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.written.current_key = c.written.cache; },
     {KVJIT_BAD_ARGUMENT, "to.current_key"}},
    {"another type",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.written.cache.dtype = KVJIT_F16; },
     {KVJIT_BAD_DTYPE, "to.cache.dtype", KVJIT_F16, KVJIT_F32}},
    {"another rank",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.read.cache.rank = 4; },
     {KVJIT_BAD_SHAPE, "from.cache.rank", 4, 5}},
    {"another extent",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { --c.written.cache.shape[0]; },
     {KVJIT_BAD_SHAPE, "to.cache.shape[0]", 7, 8}},
    {"elements that overlap",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.written.cache.strides[0] = 16; },
     {KVJIT_BAD_SHAPE, "to.cache.strides[0]", 16, 32}},
    {"a reserved word",
     kPages,
     kBlocks,
     [](RelayoutCase& c) { c.read.cache.reserved[1] = 7; },
     {KVJIT_BAD_ARGUMENT, "from.cache.reserved", 7, 0}},
    {"two caches that begin together",
     kPages,
     kOffset,
     [](RelayoutCase& c) { c.written.cache.data = c.read.cache.data; },
     {KVJIT_BAD_ARGUMENT, "to.cache"}},
    {"a cache that begins in the other one",
     kOffset,
     kOffset,
     [](RelayoutCase& c) { c.written.cache.data = static_cast<char*>(c.read.cache.data) + 64; },
     {KVJIT_BAD_ARGUMENT, "to.cache"}},
    {"values written where keys are read",
     kApart,
     kApart,
     [](RelayoutCase& c) { c.written.value_cache.data = c.read.key_cache.data; },
     {KVJIT_BAD_ARGUMENT, "to.value_cache"}},
    {"keys and values written to one place",
     kPages,
     kApart,
     [](RelayoutCase& c) { c.written.value_cache.data = c.written.key_cache.data; },
     {KVJIT_BAD_ARGUMENT, "to.key_cache"}},
    {"scales written where codes are read",
     kOffset,
     kQuantised,
     [](RelayoutCase& c) { c.written.scale.data = c.read.cache.data; },
     {KVJIT_BAD_ARGUMENT, "to.scale"}},
    {"the same slots of one cache",
     kOffset,
     kOffset,
     [](RelayoutCase& c) { c.written = c.read; },
     {KVJIT_BAD_ARGUMENT, "to", 5, 0, 0}},
};

TEST_CASE("relayouts: runs that are refused change no byte") {
    for (const Misuse& misuse : kRuns) {
        CAPTURE(misuse.name);
        RelayoutCase c(misuse.from, misuse.to);
        misuse.spoil(c);
        const Handle<kvjit_plan> plan = c.plan();
        const auto before = c.snapshot();
        kvjit_error error = new_error();
        const kvjit_status status = c.run(plan.get(), &error);
        expect_error(status, error, misuse.want);
        expect_message_repeats(error);
        CHECK(c.snapshot() == before);
    }
}

TEST_CASE("relayouts: a block in the memory of the other side's tensor is refused") {
    for (const bool reads : {false, true}) {
        RelayoutCase c(reads ? kPointers : kOffset, reads ? kOffset : kPointers);
        (reads ? c.written : c.read).cache.data = (reads ? c.from : c.to).code_blocks.memory.data() + 4096;
        const Handle<kvjit_plan> plan = c.plan();
        const auto before = c.snapshot();
        kvjit_error error = new_error();
        const kvjit_status status = c.run(plan.get(), &error);
        const std::int64_t first = (reads ? c.from : c.to).table[1];  // its one new token is the second page's
        expect_error(status, error, {KVJIT_BAD_ARGUMENT, reads ? "to.cache" : "to.cachestarts", first, 0, -1, true});
        CHECK(c.snapshot() == before);
    }
}

TEST_CASE("relayouts: blocks of codes, or of scales, that overlap those of the other side are refused") {
    for (const bool scales : {false, true}) {
        for (const std::int64_t way : {-64, 64}) {
            CAPTURE(scales);
            CAPTURE(way);
            RelayoutCase c(kScaledPointers, kScaledPointers);
            std::vector<std::int64_t>& table = scales ? c.to.scales : c.to.table;
            table[4 - 1] = (scales ? c.from.scales : c.from.table)[0 + 1] + way;  // n = m = 3 of sequence 1
            c.to.bind();
            Handle<kvjit_plan> plan;
            kvjit_error error = new_error();
            const kvjit_status status = c.try_plan(&plan, &error);
            expect_error(status, error, {KVJIT_BAD_INDEX, "to.cachestarts", table[3], 0, 1, true});
        }
    }
}

TEST_CASE("relayouts: blocks of scales in the other side's codes are refused") {
    RelayoutCase c(kScaledPointers, kScaledPointers);
    c.to.scales[4 - 1] = c.from.table[0 + 1] + 64;
    c.to.bind();
    Handle<kvjit_plan> plan;
    kvjit_error error = new_error();
    const kvjit_status status = c.try_plan(&plan, &error);
    expect_error(status, error, {KVJIT_BAD_INDEX, "to.cachestarts", c.to.scales[3], 0, 1, true});
}

TEST_CASE("relayouts: blocks of scales that the other side reads are refused, though their codes lie apart") {
    RelayoutCase c(kScaledPointers, kScaledPointers);
    c.to.scales = c.from.scales;
    c.to.bind();
    const Handle<kvjit_plan> plan = c.plan();
    const auto before = c.snapshot();
    kvjit_error error = new_error();
    CHECK(c.run(plan.get(), &error) == KVJIT_BAD_ARGUMENT);
    CHECK(error.argument == std::string("to"));
    CHECK(c.snapshot() == before);
}

TEST_CASE("relayouts: the legal cases behind the misuses run, change what they write, and nothing that they read") {
    for (const std::string_view from : {kPages, kBlocks, kQuantised, kApart, kOffset, kPointers, kScaledPointers}) {
        for (const std::string_view to : {kPages, kBlocks, kQuantised, kApart, kOffset, kPointers, kScaledPointers}) {
            CAPTURE(from);
            CAPTURE(to);
            RelayoutCase c(from, to);
            const Handle<kvjit_plan> plan = c.plan();
            kvjit_error error = new_error();
            CHECK_MESSAGE(c.run(plan.get(), &error) == KVJIT_OK, std::string(error.message));
            CHECK(kvjit_plan_synchronize(plan.get(), nullptr) == KVJIT_OK);
        }
    }
}

// ---- Wrong functions, null pointers --------------------------------------------------------------------------------

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

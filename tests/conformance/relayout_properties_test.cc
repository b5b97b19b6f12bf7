// What holds of relayouts whatever is copied: who copies it, to how many caches, within one cache, how far away.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "conformance/options.h"
#include "conformance/ragged.h"
#include "conformance/relayout_call.h"
#include "conformance/sparse_memory.h"

namespace kvjit::test {
namespace {

SideCase side_of(const std::string& fields, std::int64_t heads = 2, std::int64_t layers = 2) {
    SideCase side{spec_of("op=KeyValueCache," + fields)};
    side.num_kv_heads = heads;
    side.num_layers = layers;
    return side;
}

/// From one cache to another: some copied as they are, others converted.
struct Pair {
    std::string from, to;
};
const std::vector<Pair> kPairs = {
    {"head_dim=64,t1=f16,cache_mode=block_table,page_size=16,layout=N2LTHD",
     "head_dim=64,t1=f16,cache_mode=page_table,page_size=7,layout=L2HTD"},
    // Runs that are long enough to be written past the caches.
    {"head_dim=256,t1=f16,cache_mode=block_table,page_size=16,layout=N2LTHD",
     "head_dim=256,t1=f16,cache_mode=page_table,page_size=7,layout=L2HTD"},
    {"head_dim=64,t1=f16,cache_mode=block_table,page_size=16,layout=NLHT2D,quant_bit=8,quant_group=16",
     "head_dim=64,t1=f16,cache_mode=offset,layout=2LTHD,quant_bit=8,quant_group=16"},
    {"head_dim=256,t1=f16,cache_mode=block_table,page_size=16,layout=N2LTHD,quant_bit=8,quant_group=4",
     "head_dim=256,t1=f16,cache_mode=offset,layout=2LTHD,quant_bit=8,quant_group=4"},
    {"head_dim=64,t1=f16,cache_mode=block_pointers,page_size=16,layout=2LTHD,quant_bit=4",
     "head_dim=64,t1=f32,cache_mode=token_table,layout=LTHD,value_layout=HTLD"},
    {"head_dim=64,t1=f32,cache_mode=sequence_table,layout=NL2THD",
     "head_dim=64,t1=f32,cache_mode=block_table,page_size=32,layout=LNTHD,quant_bit=8"}};

/// Rows that begin and end in the middle of a vector.
const Pair kUneven = {"head_dim=40,t1=f16,cache_mode=offset,layout=LTH2D",
                      "head_dim=40,t1=f16,cache_mode=page_table,page_size=5,layout=2LHTD"};

/// What a call writes, in a cache that is as before each time.
std::vector<std::vector<std::byte>> bytes_of(const RelayoutCall& call) {
    const auto before = call.to->cache().snapshot();
    REQUIRE(RelayoutPlan(call).run(call) == "");
    auto after = call.to->cache().snapshot();
    call.to->cache().restore(before);
    return after;
}

void fill(Side& from, Side& to, Rng& rng) {
    are_alike(from.which().spec, to.which().spec) ? from.cache().fill_bytes(rng)
                                                  : from.cache().fill_numbers(rng, false);
    to.cache().fill_bytes(rng);
}

/// More than goes around the machine's caches, and more than one thread's.
TEST_CASE("relayouts: threads, executor order and check level change no byte, however much there is to copy") {
    std::vector<Pair> pairs = kPairs;
    pairs.push_back(kUneven);
    for (const Pair& pair : pairs) {
        for (const std::int64_t tokens : {40, 3000}) {
            if (options().on_cuda() && tokens > 40) continue;
            CAPTURE(pair.from);
            CAPTURE(pair.to);
            CAPTURE(tokens);
            Rng rng(11);
            const std::vector<Sequence> sequences = {{0, tokens}, {17, tokens / 3}, {0, 1}, {5, 0}};
            SideCase from_case = side_of(pair.from, 5), to_case = side_of(pair.to, 5);
            from_case.spread = to_case.spread = Spread::kPadded;
            from_case.scale_spread = to_case.scale_spread = Spread::kPadded;
            Side from(from_case, sequences, rng), to(to_case, sequences, rng);
            fill(from, to, rng);
            RelayoutCall call(from, to);
            const auto expected = bytes_of(call);
            CHECK(judge_relayout(call) == "");
            fill(from, to, rng);
            const auto others = bytes_of(call);
            CHECK(others != expected);
            for (const std::uint32_t threads : {1U, 2U, 3U, 8U}) {
                for (const Order order : {Order::kPool, Order::kSerial, Order::kReversed, Order::kShuffled}) {
                    call.run = {.threads = threads, .order = order, .check_level = static_cast<int>(threads % 3)};
                    CHECK(bytes_of(call) == others);
                }
            }
        }
    }
}

TEST_CASE("relayouts: codes of keys and values that lie alike, beside scales that do not") {
    const std::string spec = "head_dim=64,t1=f16,layout=LTHD,quant_bit=8,quant_group=16,cache_mode=";
    for (const bool of_source : {true, false}) {
        CAPTURE(of_source);
        Rng rng(15);
        const std::vector<Sequence> sequences = {{0, 40}, {17, 13}};
        SideCase from_case = side_of(spec + "offset"), to_case = side_of(spec + "page_table,page_size=16");
        (of_source ? from_case : to_case).scale_spread = Spread::kPadded;
        Side from(from_case, sequences, rng), to(to_case, sequences, rng);
        fill(from, to, rng);
        RelayoutCall call(from, to);
        CHECK(judge_relayout(call) == "");
    }
}

TEST_CASE("relayouts: tokens dealt out to caches and joined again are the same bytes") {
    for (const std::int64_t ranks : {2, 3, 5}) {
        CAPTURE(ranks);
        Rng rng(21);
        const std::vector<Sequence> sequences = {{0, 31}, {7, 40}, {0, 2}, {11, 0}, {4, 1}};
        const SideCase whole = side_of(kPairs[0].from), piece = side_of(kPairs[0].to);
        Side from(whole, sequences, rng), joined(whole, sequences, rng);
        from.cache().fill_bytes(rng);
        joined.cache().fill_bytes(rng);
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
            std::vector<Sequence> dealt;
            for (const Sequence& each : sequences)
                dealt.push_back({rng.below(9), static_cast<std::int64_t>(positions_of(each, ranks, rank).size())});
            Side part(piece, dealt, rng);
            part.cache().fill_bytes(rng);
            RelayoutCall deal(from, part), join(part, joined);
            deal.numbers.from_ranks = join.numbers.to_ranks = ranks;
            deal.numbers.from_rank = join.numbers.to_rank = rank;
            CHECK(judge_relayout(deal) == "");
            CHECK(judge_relayout(join) == "");
        }
        const auto got = joined.cache().snapshot();
        RelayoutCall direct(from, joined);
        oracle_relayout(direct);
        CHECK(joined.cache().snapshot() == got);
    }
}

// ---- Within one cache ----------------------------------------------------------------------------------------------

const std::vector<std::string> kOneCache = {
    "head_dim=64,t1=f16,cache_mode=offset,layout=TL2HD",
    "head_dim=64,t1=f16,cache_mode=token_table,layout=LTHD,value_layout=HLTD",
    "head_dim=64,t1=f16,cache_mode=page_table,page_size=16,layout=L2HTD,quant_bit=8",
    "head_dim=64,t1=f32,cache_mode=block_table,page_size=7,layout=NLTH2D,quant_bit=4",
    "head_dim=64,t1=f16,cache_mode=block_pointers,page_size=16,layout=2LTHD,quant_bit=8",
    "head_dim=64,t1=f16,cache_mode=sequence_table,layout=LN2HTD"};

const std::vector<Sequence> kTokens = {{0, 21}, {9, 30}, {0, 3}, {4, 1}};

/// Two sides of one cache, with no slot in common, and one that has all of the first one's.
struct OneCache {
    Rng rng{31};
    std::unique_ptr<Side> first, second;

    OneCache(const std::string& fields, std::int64_t heads, std::int64_t layers) {
        const SideCase which = side_of(fields, heads, layers);
        std::vector<Sequence> both = kTokens;
        both.insert(both.end(), kTokens.begin(), kTokens.end());
        const Entries entries = scatter(which, both, rng);
        const auto cache = std::make_shared<SideCache>(which, entries, rng);
        first = std::make_unique<Side>(which, kTokens, entries.part(0, kTokens.size()), cache, rng);
        second = std::make_unique<Side>(which, kTokens, entries.part(kTokens.size(), kTokens.size()), cache, rng);
        cache->fill_bytes(rng);
    }
};

TEST_CASE("relayouts within one cache: to other slots, other heads, other layers") {
    for (const std::string& fields : kOneCache) {
        CAPTURE(fields);
        OneCache one(fields, 4, 3);
        RelayoutCall slots(*one.first, *one.second);
        CHECK(judge_relayout(slots) == "");
        RelayoutCall heads(*one.first, *one.first);
        heads.numbers.num_kv_heads = 2;
        heads.numbers.from_head = 2;
        CHECK(judge_relayout(heads) == "");
        RelayoutCall layers(*one.first, *one.first);
        layers.numbers.num_layers = 1;
        layers.from_layer = 2;
        layers.to_layer = 1;
        CHECK(judge_relayout(layers) == "");
    }
}

/// Refused for `argument`, and no byte has changed.
void expect_refused(const RelayoutCall& call, const std::string& status, const std::string& begin) {
    const auto before = call.to->cache().snapshot();
    const std::string error = RelayoutPlan(call).run(call);
    INFO(error);
    CHECK(error.find(status + ": " + begin) != std::string::npos);
    CHECK(call.to->cache().snapshot() == before);
}

TEST_CASE("relayouts within one cache: a slot that is read and written is refused") {
    for (const std::string& fields : kOneCache) {
        CAPTURE(fields);
        OneCache one(fields, 4, 3);
        RelayoutCall all(*one.first, *one.first);
        expect_refused(all, "KVJIT_BAD_ARGUMENT", "to writes");
        RelayoutCall heads = all;
        heads.numbers.num_kv_heads = 2;
        heads.numbers.to_head = 1;
        expect_refused(heads, "KVJIT_BAD_ARGUMENT", "to writes");
        RelayoutCall layers = all;
        layers.numbers.num_layers = 2;
        layers.to_layer = 1;
        expect_refused(layers, "KVJIT_BAD_ARGUMENT", "to writes");
    }
}

/// One sequence's last token in a slot of another one's.
TEST_CASE("relayouts within one cache: one shared slot is enough") {
    for (const bool shared : {false, true}) {
        const SideCase which = side_of("head_dim=64,t1=f16,cache_mode=token_table,layout=TL2HD", 1, 1);
        Rng rng(41);
        const std::vector<Sequence> one = {{2, 3}};
        const Entries all{{{{10, 11, 12, 13, 14}}}, 40, 5}, from{{{{0, 1, 20, shared ? 13 : 9, 30}}}, 40, 5};
        const auto cache = std::make_shared<SideCache>(which, all, rng);
        Side source(which, one, from, cache, rng), destination(which, one, all, cache, rng);
        cache->fill_bytes(rng);
        const RelayoutCall call(source, destination);
        if (!shared) CHECK(judge_relayout(call) == "");
        if (shared) expect_refused(call, "KVJIT_BAD_ARGUMENT", "to writes slot 13");
    }
}

/// Every other token of a page, to those between them.
TEST_CASE("relayouts within one cache: tokens of one rank go to slots of another") {
    const SideCase which = side_of("head_dim=64,t1=f16,cache_mode=page_table,page_size=16,layout=TL2HD", 1, 1);
    Rng rng(42);
    const std::vector<Sequence> all = {{0, 40}};
    const Entries entries = scatter(which, all, rng);
    Side side(which, all, entries, std::make_shared<SideCache>(which, entries, rng), rng);
    side.cache().fill_bytes(rng);
    RelayoutCall call(side, side);
    call.numbers.from_ranks = call.numbers.to_ranks = 2;
    call.numbers.to_rank = 1;
    CHECK(judge_relayout(call) == "");
    call.numbers.to_rank = 0;
    expect_refused(call, "KVJIT_BAD_ARGUMENT", "to writes");
}

/// Tables of layers that send what one layer reads to slots that another one writes.
TEST_CASE("relayouts within one cache: with a table a layer, each layer has its own slots") {
    SideCase which = side_of("head_dim=64,t1=f16,cache_mode=token_table,layout=LT2HD", 1, 2);
    which.layer_tables = true;
    Rng rng(43);
    const std::vector<Sequence> one = {{0, 3}};
    const Entries from{{{{0, 1, 2}}, {{10, 11, 12}}}, 20, 3};
    const auto cache = std::make_shared<SideCache>(which, from, rng);
    for (const bool shared : {false, true}) {
        const Entries to{{{{10, 11, 12}}, {{0, shared ? 12 : 1, 2}}}, 20, 3};
        Side source(which, one, from, cache, rng), destination(which, one, to, cache, rng);
        cache->fill_bytes(rng);
        const RelayoutCall call(source, destination);
        if (!shared) CHECK(judge_relayout(call) == "");
        if (shared) expect_refused(call, "KVJIT_BAD_ARGUMENT", "to writes slot 12");
    }
}

/// Layers of a cache without axis L lie in one plane, each where its table says.
TEST_CASE("relayouts that write two layers' tokens to one slot are refused") {
    SideCase from_case = side_of("head_dim=64,t1=f16,cache_mode=token_table,layout=LT2HD", 1, 2);
    SideCase to_case = side_of("head_dim=64,t1=f16,cache_mode=token_table,layout=THD", 1, 2);
    to_case.layer_tables = true;
    Rng rng(44);
    const std::vector<Sequence> one = {{0, 3}};
    Side from(from_case, one, rng);
    from.cache().fill_bytes(rng);
    for (const bool shared : {false, true}) {
        const Entries entries{{{{0, 1, 2}}, {{shared ? 2 : 3, 4, 5}}}, 20, 3};
        Side to(to_case, one, entries, std::make_shared<SideCache>(to_case, entries, rng), rng);
        to.cache().fill_bytes(rng);
        RelayoutCall call(from, to);
        if (!shared) CHECK(judge_relayout(call) == "");
        if (shared) expect_refused(call, "KVJIT_BAD_INDEX", "to.cachestarts");
        call.numbers.num_layers = 1;
        call.to_layer = 1;
        CHECK(judge_relayout(call) == "");
    }
}

/// Another view of the same memory: another layout, other extents, or a part of it.
TEST_CASE("relayouts between two views of one memory are refused") {
    const SideCase which = side_of("head_dim=64,t1=f16,cache_mode=block_table,page_size=8,layout=N2LTHD", 2, 2);
    SideCase other = which;
    std::memcpy(other.spec.layout, "NL2THD", 7);
    Rng rng(51);
    const std::vector<Sequence> one = {{0, 20}};
    const Entries low{{{{0, 1, 2}}}, 8, 20}, high{{{{5, 6, 7}}}, 8, 20};
    const auto cache = std::make_shared<SideCache>(which, low, rng);
    Side from(which, one, low, cache, rng), to(other, one, high, cache, rng);
    cache->fill_bytes(rng);
    expect_refused(RelayoutCall(from, to), "KVJIT_BAD_ARGUMENT", "to.cache lies in the memory of from.cache");
}

TEST_CASE("relayouts between blocks at one address by two layouts are refused, whichever tokens they are of") {
    const SideCase which = side_of("head_dim=64,t1=f16,cache_mode=block_pointers,page_size=8,layout=2LTHD", 2, 2);
    SideCase other = which;
    std::memcpy(other.spec.layout, "L2HTD", 6);
    Rng rng(52);
    const Entries entries{{{{0}}}, 1, 8};
    const auto cache = std::make_shared<SideCache>(which, entries, rng);
    cache->fill_bytes(rng);
    Side from(which, {{0, 4}}, entries, cache, rng), same(other, {{0, 4}}, entries, cache, rng),
        behind(other, {{4, 4}}, entries, cache, rng);
    for (Side* to : {&same, &behind})
        expect_refused(RelayoutCall(from, *to), "KVJIT_BAD_INDEX", "to.cachestarts has the block at 0x");
}

// ---- Far away ------------------------------------------------------------------------------------------------------

constexpr std::int64_t kRow = 64;  // bytes: 32 elements of float16
constexpr std::size_t kFar = std::size_t{64} << 30;

std::unique_ptr<kvjit_plan, PlanRelease> plan_of(const std::string& spec_text, const kvjit_batch& from,
                                                 const kvjit_batch& to) {
    const kvjit_spec spec = spec_of(spec_text);
    kvjit_error error;
    kvjit_error_init(&error);
    kvjit_kernel* kernel = nullptr;
    REQUIRE(kvjit_engine_kernel(shared_engine(), &spec, chosen_target().get(), &kernel, &error) == KVJIT_OK);
    kvjit_relayout relayout;
    kvjit_relayout_init(&relayout);
    relayout.from = &from;
    relayout.to = &to;
    kvjit_plan* plan = nullptr;
    REQUIRE_MESSAGE(kvjit_relayout_plan_create(kernel, &relayout, nullptr, &plan, &error) == KVJIT_OK, error.message);
    kvjit_kernel_release(kernel);
    return std::unique_ptr<kvjit_plan, PlanRelease>(plan);
}

/// Sequences of one token each, whose place is all of a table row.
kvjit_batch tokens_of(const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& table) {
    kvjit_batch batch;
    kvjit_batch_init(&batch);
    batch.batch_size = static_cast<std::int64_t>(table.size());
    batch.num_kv_heads = 1;
    batch.seqstarts = batch.kvstarts = starts.data();
    const std::int64_t shape[] = {batch.batch_size, 1};
    batch.cachestarts = kvjit_tensor_contiguous(const_cast<std::int64_t*>(table.data()), KVJIT_I64, 2, shape);
    return batch;
}

/// A block's key and value, each of one token.
void write_block(std::byte* block, int seed) {
    for (std::int64_t i = 0; i < 2 * kRow; ++i) block[i] = static_cast<std::byte>(7 * i + seed);
}

TEST_CASE("relayouts reach blocks that lie 64 GiB apart, and numbers beyond 2^31 elements") {
    SparseMemory from(kFar), to(kFar);
    REQUIRE(from.exists());
    REQUIRE(to.exists());
    const std::vector<std::int64_t> starts = {0, 1, 2, 3};
    const std::int64_t last = static_cast<std::int64_t>(kFar) / (2 * kRow) - 1;
    const std::vector<std::int64_t> source = {0, last, last / 2 + 3}, places = {last - 1, 4, last / 3};
    for (std::size_t i = 0; i < source.size(); ++i) {
        write_block(from.data() + source[i] * 2 * kRow, static_cast<int>(i));
        std::memset(to.data() + places[i] * 2 * kRow, 0, 2 * kRow);
    }
    from.show_written();
    to.show_written();
    const auto addresses = [](const SparseMemory& memory, std::vector<std::int64_t> blocks) {
        for (std::int64_t& block : blocks) block = reinterpret_cast<std::intptr_t>(memory.data()) + block * 2 * kRow;
        return blocks;
    };
    const auto check = [&](kvjit_plan* plan) {
        CHECK(kvjit_plan_synchronize(plan, nullptr) == KVJIT_OK);
        for (std::size_t i = 0; i < source.size(); ++i) {
            std::byte* there = to.data() + places[i] * 2 * kRow;
            CHECK(std::memcmp(from.data() + source[i] * 2 * kRow, there, 2 * kRow) == 0);
            std::memset(there, 0, 2 * kRow);
        }
    };
    kvjit_tensors none, from_tensors, to_tensors;
    for (kvjit_tensors* each : {&none, &from_tensors, &to_tensors}) kvjit_tensors_init(each);
    const std::int64_t shape[] = {last + 1, 2, 1, 1, kRow / 2};
    from_tensors.cache = kvjit_tensor_contiguous(from.data(), KVJIT_F16, 5, shape);
    to_tensors.cache = kvjit_tensor_contiguous(to.data(), KVJIT_F16, 5, shape);

    const std::string common = "op=Relayout,head_dim=32,t1=f16,page_size=1,";
    const auto from_table = addresses(from, source), to_table = addresses(to, places);
    kvjit_batch blocks_from = tokens_of(starts, source), blocks_to = tokens_of(starts, places);
    blocks_from.num_blocks = blocks_to.num_blocks = last + 1;
    const kvjit_batch at_from = tokens_of(starts, from_table), at_to = tokens_of(starts, to_table);

    const auto pointers = plan_of(common + "cache_mode=block_pointers,layout=2THD", at_from, at_to);
    CHECK(kvjit_relayout_run(pointers.get(), &none, 0, &none, 0, nullptr) == KVJIT_OK);
    check(pointers.get());
    const auto numbers = plan_of(common + "cache_mode=block_table,layout=N2THD", blocks_from, blocks_to);
    CHECK(kvjit_relayout_run(numbers.get(), &from_tensors, 0, &to_tensors, 0, nullptr) == KVJIT_OK);
    check(numbers.get());
    const auto mixed = plan_of(common +
                                   "cache_mode=block_pointers,layout=2THD,to_cache_mode=block_table,"
                                   "to_layout=N2THD",
                               at_from, blocks_to);
    CHECK(kvjit_relayout_run(mixed.get(), &none, 0, &to_tensors, 0, nullptr) == KVJIT_OK);
    check(mixed.get());
}

/// Runs of a plan that copies 600 neighbouring tokens of a token table into another cache.
std::string runs_of(std::int64_t layers) {
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(600 * layers));
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int64_t>(i % 600 + 7);
    const std::int64_t starts[] = {0, 600}, begin[] = {3};
    kvjit_spec spec;
    REQUIRE(kvjit_spec_parse("op=Relayout,head_dim=8,cache_mode=token_table,layout=TL2HD,to_cache_mode=offset", &spec,
                             nullptr) == KVJIT_OK);
    kvjit_batch from, to;
    kvjit_batch_init(&from);
    from.batch_size = 1;
    from.num_kv_heads = 1;
    from.num_layers = layers;
    from.max_tokens = 1000;
    from.seqstarts = from.kvstarts = starts;
    to = from;
    const std::int64_t table[] = {layers, 600}, one[] = {1};
    from.cachestarts = kvjit_tensor_contiguous(tokens.data(), KVJIT_I64, 2, table);
    to.cachestarts = kvjit_tensor_contiguous(const_cast<std::int64_t*>(begin), KVJIT_I64, 1, one);
    kvjit_relayout relayout;
    kvjit_relayout_init(&relayout);
    relayout.from = &from;
    relayout.to = &to;
    kvjit_kernel* kernel = nullptr;
    REQUIRE(kvjit_engine_kernel(shared_engine(), &spec, chosen_target().get(), &kernel, nullptr) == KVJIT_OK);
    kvjit_plan* plan = nullptr;
    kvjit_error error;
    kvjit_error_init(&error);
    const kvjit_status status = kvjit_relayout_plan_create(kernel, &relayout, nullptr, &plan, &error);
    kvjit_kernel_release(kernel);
    REQUIRE_MESSAGE(status == KVJIT_OK, error.message);
    std::string text;
    kvjit_plan_describe(
        plan,
        [](void* out, const char* piece, std::size_t size) { static_cast<std::string*>(out)->append(piece, size); },
        &text);
    kvjit_plan_release(plan);
    return text.substr(text.find("\nruns: ") + 1, text.find("\nbytes") - text.find("\nruns: ") - 1);
}

TEST_CASE("relayouts: neighbouring tokens of a table are one run, whatever layers there are") {
    // 600 tokens, of which a run has at most 256 on a CPU, and 32 on a GPU.
    const char* runs = options().on_cuda() ? "runs: 19" : "runs: 3";
    CHECK(runs_of(1) == runs);
    CHECK(runs_of(4) == runs);
}

}  // namespace
}  // namespace kvjit::test

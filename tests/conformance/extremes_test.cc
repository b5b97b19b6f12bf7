// Calls at the edges: nothing to do, numbers that are huge or none, caches beyond 32 bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "call/oracle.h"
#include "conformance/call.h"
#include "conformance/judge.h"
#include "conformance/options.h"
#include "conformance/ragged.h"
#include "conformance/run_call.h"
#include "conformance/sparse_memory.h"

namespace kvjit::test {
namespace {

TEST_CASE("a sequence sees what another sequence of the same call stores") {
    Case which = ragged("op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f32,cache_mode=offset,layout=TL2HD");
    which.batch_size = 2;
    which.new_tokens = NewTokens::kFew;
    which.past_tokens = PastTokens::kFew;
    Call call = make_call(which, 81, 82);
    // Sequence 1 continues sequence 0: its past is all that sequence 0 has after this call.
    Problem& problem = call.problem;
    const std::int64_t n = problem.new_tokens(1);
    problem.start_pos[1] = problem.kv_tokens(0);
    problem.kvstarts[2] = problem.kvstarts[1] + problem.kv_tokens(0) + n;
    problem.cachestarts = {0, 0};
    call.kvstarts = Placed::integers(problem.kvstarts, KVJIT_I64, Guard::kAfter);
    call.start_pos = Placed::integers(problem.start_pos, KVJIT_I64, Guard::kAfter);
    call.cachestarts = Placed::integers(problem.cachestarts, KVJIT_I64, Guard::kAfter);
    call.max_tokens = 40;
    call.cache[0] = Placed(KVJIT_F32, {40, 1, 2, 2, 64}, {256, 256, 128, 64, 1}, Guard::kAfter);
    Rng rng(83);
    call.cache[0].fill([&] { return rng.normal(); });
    call.which.bounds_known = false;
    check_against_oracle(call);
}

TEST_CASE("empty batches are legal and write nothing") {
    for (const std::string& spec : attention_specs()) {
        Case which = ragged(spec);
        which.batch_size = 0;
        check_against_oracle(which, 91, 92);
    }
}

TEST_CASE("a NaN in a stored group reads back as NaN, and only there") {
    for (const int bits : {8, 4}) {
        Case which =
            ragged("op=KeyValueCache,head_dim=64,t1=f32,quant_group=16,layout=L2HTD,quant_bit=" + std::to_string(bits));
        Call call = make_call(which, 101, 102);
        REQUIRE(call.problem.seqstarts.back() > 1);
        const Strided& key = call.current_key.strided();
        // Its bits are those of no code 0, also the low ones of what rounds it to float32.
        call.current_key.set(key.index(0, 1, 17), std::nan("0xaa0000000"));
        call.current_key.set(key.index(1, 0, 63), HUGE_VAL);
        check_against_oracle(call);
    }
}

TEST_CASE("rows that see no key give 0 and -inf") {
    for (const std::string mask : {"is_causal=1", "is_alibi=1", "is_causal=1,attn_mask=3"}) {
        for (const int group : {1, 7}) {
            for (const NewTokens tokens : {NewTokens::kFew, NewTokens::kTileEdge}) {
                CAPTURE(mask);
                CAPTURE(group);
                Case which =
                    ragged("op=MultiHeadAttention,head_dim=40,t1=f32," + mask + ",group=" + std::to_string(group));
                which.new_tokens = tokens;
                which.past_tokens = PastTokens::kNone;
                which.batch_size = 8;
                const Call call = check_against_oracle(which, 105, 106);
                const auto lse = numbers_of(call.lse);
                CHECK(std::ranges::count(lse, -std::numeric_limits<double>::infinity()) > 0);
            }
        }
    }
}

TEST_CASE("a NaN in a visible query or key reaches the rows that see it, and no other") {
    for (const std::string& spec : attention_specs()) {
        Case which = ragged(spec);
        which.new_tokens = NewTokens::kTileEdge;
        Call call = make_call(which, 111, 112);
        const Strided& query = call.query.strided();
        const std::int64_t last = call.problem.seqstarts[2] - 1;
        call.query.set(query.index(last, 0, 5), std::nan(""));
        if (call.current_key.present()) {
            // The key of a new token in the middle of sequence 0: with a causal mask, earlier rows don't see it.
            const std::int64_t middle = call.problem.seqstarts[1] / 2;
            call.current_key.set(call.current_key.strided().index(middle, 1, 0), std::nan(""));
        }
        check_against_oracle(call);
    }
}

/// Element 33 of the value that kv head 0 of sequence 0 has for a key: of packed values, or of a cache that isn't
/// quantised.
void set_value(Call& call, std::int64_t key, double number) {
    if (call.value.present()) return call.value.set(call.value.strided().index(key, 0, 33), number);
    const CacheMemory values = memory_of(call.cache);
    write_element(cache_row(call.problem, values, 1, slot_of(call.problem, 0, key), 0).at(33), values.dtype(), 0,
                  number);
}

/// A NaN or an infinity in the value of one key after the other of a sequence: of a few keys, but a NaN, where there is
/// a window, in all that a token sees and some before them.
void expect_at_keys(double number, const Case& which, std::uint64_t seed) {
    const Problem problem = make_call(which, seed, 114).problem;
    const std::int64_t keys = problem.kv_tokens(0), tokens = problem.new_tokens(0);
    std::vector<std::int64_t> places = {0, keys / 2, keys / 2 + 1, keys - 3, keys - 2, keys - 1};
    if (which.spec.has_window != 0 && std::isnan(number)) {
        places.resize(static_cast<std::size_t>(tokens + 8));
        std::iota(places.begin(), places.end(), keys - tokens - 8);
    }
    for (const std::int64_t key : places) {
        CAPTURE(key);
        Call call = make_call(which, seed, 114);
        set_value(call, key, number);
        check_against_oracle(call);
    }
}

/// The same for one sequence, or four of a few tokens, each in a call of its own: of at least 16 keys more than tokens,
/// so that a window hides some, and of 17 tokens at most, for the time that it takes.
void expect_where_seen(double number, Case which) {
    which.batch_size = 1;
    which.past_tokens = PastTokens::kVectorEdge;
    which.window_left = 4;
    const auto hides_some = [&](std::uint64_t seed) {
        const Problem problem = make_call(which, seed, 114).problem;
        const std::int64_t keys = problem.kv_tokens(0), tokens = problem.new_tokens(0);
        return keys >= tokens + 16 && tokens <= 17;
    };
    std::uint64_t next = 113;
    for (int left = which.new_tokens == NewTokens::kTwoOrThree ? 4 : 1; left > 0; --left) {
        const std::uint64_t seed = find_seed(next, hides_some);
        expect_at_keys(number, which, seed);
        next = seed + 1;
    }
}

/// Whether a few tokens share a tile of rows: in decode on CUDA, and where AMX makes prefill take them.
bool few_tokens_share_tiles() {
    return options().on_cuda() || multiplies_tiles();
}

/// The same attention over a cache that holds all keys and values, each head's tokens side by side, of 64 elements.
Case read_from_cache(Case which) {
    const Case cached = ragged("op=MultiHeadCacheAttention,layout=L2HTD,head_dim=64");
    const kvjit_spec given = which.spec;
    which.spec = cached.spec;
    which.spec.t1 = given.t1;
    which.spec.t2 = given.t1;
    which.spec.group = given.group;
    which.spec.is_causal = given.is_causal;
    which.spec.has_window = given.has_window;
    which.spec.attn_mask = given.attn_mask;
    which.stores = Stores::kNever;
    return which;
}

TEST_CASE("a NaN or an infinity in a value reaches the tokens that see it, and no other") {
    double number = std::nan(""), other = HUGE_VAL;
    for (const std::string type : {"f32", "f16", "bf16"}) {
        for (const std::string rule : {"is_causal=1", "is_causal=1,has_window=1", "is_causal=1,attn_mask=2"}) {
            CAPTURE(type);
            CAPTURE(rule);
            CAPTURE(number);
            const std::string spec = "op=MultiHeadAttention,head_dim=40,t1=" + type + "," + rule + ",group=";
            // 128 query heads a kv head: no tile of prefill has rows of two tokens.
            Case which = ragged(spec + "128");
            which.new_tokens = NewTokens::kTileEdge;
            expect_where_seen(number, which);
            // Pairs of bfloat16 keys that a window cuts: where it begins at an odd key.
            if (type == "bf16" && which.spec.has_window != 0) expect_where_seen(other, which);
            // Nor has a tile of 4 rows of a CPU's decode.
            which = ragged(spec + "4");
            which.new_tokens = NewTokens::kTwoOrThree;
            if (!few_tokens_share_tiles()) expect_where_seen(number, which);
            // What AMX decodes: a head's tokens are neighbours in a cache of bfloat16. Tiles have rows of both tokens.
            if (type == "bf16" && !options().on_cuda()) expect_where_seen(number, read_from_cache(which));
            which.new_tokens = NewTokens::kOne;
            expect_where_seen(number, which);
            if (type == "bf16") expect_where_seen(other, read_from_cache(which));
            std::swap(number, other);  // so that each type and each rule meets both
        }
    }
}

TEST_CASE("an infinite key hides itself, whichever of its elements is infinite") {
    for (const std::string head_dim : {"8", "24", "40", "64"}) {
        for (const std::string type : {"f32", "f16"}) {
            CAPTURE(head_dim);
            CAPTURE(type);
            Case which = ragged("op=MultiHeadAttention,is_causal=0,head_dim=" + head_dim + ",t1=" + type);
            which.batch_size = 1;
            which.new_tokens = NewTokens::kOne;
            Call call = make_call(which, 301, 302);
            call.query.fill([] { return 0.5; });
            const Strided& key = call.key.strided();
            call.key.set(key.index(0, 0, key.shape[2] - 3), -HUGE_VAL);
            check_against_oracle(call);
        }
    }
}

// Tiles of prefill leave out values that none of their rows sees, or that none of a part of them does.
TEST_CASE("a mask hides each key from every other 16 rows") {
    for (const std::string spec : {"op=MultiHeadAttention,head_dim=64", "op=MultiHeadAttention,head_dim=128",
                                   "op=MultiHeadAttention,head_dim=160", "op=MultiHeadAttention,head_dim=256",
                                   "op=MultiHeadCacheAttention,head_dim=256,quant_bit=8,quant_group=64"}) {
        for (const std::string type : {"f16", "f32"}) {
            Case which = ragged(spec + ",attn_mask=2,is_causal=0,group=4,t1=" + type);
            which.new_tokens = NewTokens::kTileEdge;
            Call call = make_call(which, 115, 116);
            const Strided& mask = call.mask.strided();
            for (std::int64_t token = 0; token < mask.shape[0]; ++token) {
                for (std::int64_t key = 0; key < mask.shape[1]; ++key) {
                    if ((token * which.spec.group / 16 + key) % 2 != 0)
                        call.mask.set(mask.index(token, key), -HUGE_VAL);
                }
            }
            check_against_oracle(call);
        }
    }
}

TEST_CASE("a negative softmax_scale") {
    for (const std::string& spec : attention_specs()) {
        for (const NewTokens tokens : {NewTokens::kOne, NewTokens::kTileEdge}) {
            Case which = ragged(spec);
            which.new_tokens = tokens;
            Call call = make_call(which, 117, 118);
            call.problem.softmax_scale = -0.2F;
            check_against_oracle(call);
        }
    }
}

TEST_CASE("a subnormal softmax_scale: a row's keys weigh the same") {
    for (const std::string type : {"f32", "f16", "bf16"}) {
        for (const NewTokens tokens : {NewTokens::kOne, NewTokens::kTileEdge}) {
            CAPTURE(type);
            Case which = ragged("op=MultiHeadAttention,head_dim=64,group=4,t1=" + type);
            which.new_tokens = tokens;
            Call call = make_call(which, 117, 118);
            call.problem.softmax_scale = std::numeric_limits<float>::denorm_min();
            check_against_oracle(call);
        }
    }
}

TEST_CASE("scores of hundreds of thousands neither overflow nor lose the winner") {
    for (const std::string shape : {"head_dim=64,group=1", "head_dim=128,group=8", "head_dim=64,group=1,is_causal=0"}) {
        for (const NewTokens tokens : {NewTokens::kRagged, NewTokens::kTileEdge}) {
            for (const float scale : {64.0F, -64.0F}) {
                CAPTURE(scale);
                Case which = ragged("op=MultiHeadAttention,t1=f32," + shape);
                which.new_tokens = tokens;
                Call call = make_call(which, 121, 122);
                Rng rng(123);
                // Small integers: dot products are exact, so the scores are, and nothing excuses a difference.
                for (Placed* each : {&call.query, &call.key}) {
                    each->fill([&] { return static_cast<double>(rng.between(-8, 8)); });
                }
                call.problem.softmax_scale = scale;
                check_against_oracle(call);
            }
        }
    }
}

/// Sets element 0 of each row to number(), the others to 0.
template <class F>
void fill_first(Placed& rows, F&& number) {
    rows.fill([] { return 0.0; });
    const Strided& at = rows.strided();
    for (std::int64_t token = 0; token < at.shape[0]; ++token) {
        for (std::int64_t head = 0; head < at.shape[1]; ++head) rows.set(at.index(token, head, 0), number());
    }
}

TEST_CASE("products near the largest float32 with a tiny softmax_scale, and the other way round") {
    struct Numbers {
        double query, key;  // times a small integer
        float softmax_scale;
    };
    for (const std::string type : {"f32", "f16", "bf16"}) {
        // Differences of the first products are no float32, as the second scale times log2(e) is none.
        const bool wide = type != "f16";
        const bool has_bound = options().on_cuda() && type == "bf16";  // docs/cuda.md, "Precision"
        const float largest_scale = has_bound ? 0x1p127F : 0x1.8p127F;
        const Numbers large = {wide ? 0x1p60 : 0x1p12, wide ? 0x1p65 : 0x1p12, wide ? 0x1p-126F : 0x1p-25F};
        const Numbers small = {wide ? 0x1p-60 : 0x1p-9, wide ? 0x1p-66 : 0x1p-9, wide ? largest_scale : 0x1p18F};
        for (const Numbers& numbers : {large, small}) {
            for (const NewTokens tokens : {NewTokens::kOne, NewTokens::kTileEdge}) {
                CAPTURE(type);
                CAPTURE(numbers.softmax_scale);
                Case which = ragged("op=MultiHeadAttention,head_dim=64,group=4,t1=" + type);
                which.new_tokens = tokens;
                Call call = make_call(which, 126, 127);
                Rng rng(128);
                fill_first(call.query, [&] { return numbers.query * static_cast<double>(rng.between(1, 2)); });
                fill_first(call.key, [&] { return numbers.key * static_cast<double>(rng.between(-2, 2)); });
                call.problem.softmax_scale = numbers.softmax_scale;
                check_against_oracle(call);
            }
        }
    }
}

TEST_CASE("a sink beside scores that are far from 0") {
    for (const std::string type : {"f32", "f16"}) {
        for (const NewTokens tokens : {NewTokens::kOne, NewTokens::kTileEdge}) {
            for (const double score : {100.0, -100.0}) {
                CAPTURE(score);
                Case which = ragged("op=MultiHeadAttention,head_dim=64,group=4,has_sinks=1,is_causal=0,t1=" + type);
                which.new_tokens = tokens;
                Call call = make_call(which, 124, 125);
                call.query.fill([] { return 1.0; });
                call.key.fill([&] { return score / 64; });
                call.sinks.fill([&] { return score + 1; });
                call.problem.sinks.assign(call.problem.sinks.size(), static_cast<float>(score + 1));
                call.problem.softmax_scale = 1;
                check_against_oracle(call);
            }
        }
    }
}

TEST_CASE("quantisation at its edges: ties, the smallest scale, saturation, zeros") {
    for (const int bits : {8, 4}) {
        for (const std::string types : {"t1=f32,t3=f32", "t1=f32,t3=f16", "t1=f16,t3=f16", "t1=f16,t3=f32",
                                        "t1=f32,t3=bf16", "t1=bf16,t3=bf16", "t1=bf16,t3=f16", "t1=bf16,t3=f32"}) {
            Case which =
                ragged("op=KeyValueCache,head_dim=64,quant_group=8,layout=TL2HD,quant_bit=" + std::to_string(bits) +
                       "," + types);
            Call call = make_call(which, 131, 132);
            const double qmax = bits == 8 ? 127 : 7;
            const bool wide = which.spec.t1 != KVJIT_F16;
            const std::vector<double> largest = {qmax,
                                                 qmax * 1e-5,
                                                 qmax * 0.99e-5,
                                                 0,
                                                 0x1p-24,
                                                 wide ? 3e38 : 65504,
                                                 wide ? 65504.0 * qmax * 1.01 : 60000,
                                                 1};
            for (std::int64_t group = 0; group < 8; ++group) {
                const double top = largest[static_cast<std::size_t>(group)];
                for (std::int64_t i = 0; i < 8; ++i) {
                    // Halves between codes, of both signs, when the scale is exact.
                    const double number = i == 0 ? top : (i % 2 ? 1 : -1) * (static_cast<double>(i) - 0.5) * top / qmax;
                    call.current_key.set(call.current_key.strided().index(0, 0, group * 8 + i), number);
                }
            }
            check_against_oracle(call);
        }
    }
}

/// `small` with `tokens` on its token axis: the same order of axes, row-major, at `memory`.
kvjit_tensor widened(kvjit_tensor small, std::size_t token_axis, std::int64_t tokens, std::byte* memory) {
    small.shape[token_axis] = tokens;
    small.data = memory;
    for (std::int32_t axis = small.rank - 1; axis > 0; --axis) {
        small.strides[axis - 1] = small.strides[axis] * small.shape[axis];
    }
    return small;
}

/// Copies all rows of `small` to `wide`, `shift` tokens further.
void copy_shifted(const kvjit_tensor& small, kvjit_tensor wide, std::size_t token_axis, std::int64_t shift) {
    const auto width = static_cast<std::int64_t>(bytes_of(small.dtype));
    std::int64_t rows = 1;
    for (std::int32_t axis = 0; axis + 1 < small.rank; ++axis) rows *= small.shape[axis];
    for (std::int64_t row = 0; row < rows; ++row) {
        std::int64_t from = 0;
        std::int64_t to = shift * wide.strides[token_axis];
        std::int64_t rest = row;
        for (std::int32_t axis = small.rank - 2; axis >= 0; --axis) {
            const std::int64_t i = rest % small.shape[axis];
            rest /= small.shape[axis];
            from += i * small.strides[axis];
            to += i * wide.strides[axis];
        }
        std::memcpy(static_cast<std::byte*>(wide.data) + to * width,
                    static_cast<const std::byte*>(small.data) + from * width,
                    static_cast<std::size_t>(small.shape[small.rank - 1] * width));
    }
}

TEST_CASE("a cache of ten million tokens gives the bits of a small one") {
    constexpr std::int64_t kTokens = 10'000'000;
    constexpr std::size_t kCacheBytes = 32ULL << 30;
    constexpr std::size_t kScaleBytes = 8ULL << 30;
    for (const std::string layout : {"TL2HD", "L2HTD"}) {
        CAPTURE(layout);
        Case which =
            ragged("op=MultiHeadCacheAttention,head_dim=128,group=2,quant_bit=8,quant_group=16,layout=" + layout);
        which.num_layers = 3;
        const Call small = ran(which, 141, 142);
        const Call large = make_call(which, 141, 142);
        SparseMemory cache(kCacheBytes), scale(kScaleBytes);
        if (!cache.exists() || !scale.exists()) {
            MESSAGE("skipped: no address space for a large cache here");
            return;
        }
        Bound bound = bind(large);
        const std::size_t token_axis = layout.find('T');
        const std::int64_t shift = kTokens - bound.batch.max_tokens;
        const kvjit_tensor small_cache = bound.tensors.cache;
        const kvjit_tensor small_scale = bound.tensors.scale;
        bound.tensors.cache = widened(small_cache, token_axis, kTokens, cache.data());
        bound.tensors.scale = widened(small_scale, token_axis, kTokens, scale.data());
        copy_shifted(small_cache, bound.tensors.cache, token_axis, shift);
        copy_shifted(small_scale, bound.tensors.scale, token_axis, shift);
        cache.show_written();
        scale.show_written();
        bound.batch.max_tokens = kTokens;
        std::vector<std::int64_t> starts = large.problem.cachestarts;
        for (std::int64_t& start : starts) start += shift;
        bound.batch.cachestarts.data = starts.data();
        REQUIRE(run_bound(bound, {}) == "");
        CHECK(large.attn_output.packed() == small.attn_output.packed());
        CHECK(large.lse.packed() == small.lse.packed());
    }
}

/// The bytes of blocks, 64 GiB from each to the next.
class FarBlocks {
public:
    explicit FarBlocks(const std::vector<Placed>& blocks) {
        for (const Placed& block : blocks) {
            memory_.push_back(std::make_unique<SparseMemory>(kApart));
            if (!memory_.back()->exists()) continue;
            const std::vector<std::byte> bytes = block.packed();
            std::memcpy(memory_.back()->data(), bytes.data(), bytes.size());
            memory_.back()->show_written();
        }
    }
    bool exist() const {
        return std::ranges::all_of(memory_, [](const auto& each) { return each->exists(); });
    }
    std::vector<std::byte> bytes_of(std::size_t block, std::size_t count) const {
        return {memory_[block]->data(), memory_[block]->data() + count};
    }
    /// The table that has these blocks' addresses where `near` has those of `blocks`.
    std::vector<std::int64_t> table(const Placed& near, const std::vector<Placed>& blocks) const {
        std::vector<std::int64_t> entries;
        for (const double number : numbers_of(near)) {
            auto entry = static_cast<std::int64_t>(number);
            for (std::size_t i = 0; i < blocks.size(); ++i) {
                if (entry == reinterpret_cast<std::intptr_t>(blocks[i].strided().data))
                    entry = reinterpret_cast<std::intptr_t>(memory_[i]->data());
            }
            entries.push_back(entry);
        }
        return entries;
    }

private:
    static constexpr std::size_t kApart = 64ULL << 30;
    std::vector<std::unique_ptr<SparseMemory>> memory_;
};

TEST_CASE("blocks of 80 layers that lie 64 GiB apart give the bits of near ones") {
    Case which = ragged(
        "op=MultiHeadCacheAttention,head_dim=64,group=2,quant_bit=8,quant_group=16,cache_mode=block_pointers,"
        "page_size=16,layout=2LTHD");
    which.num_layers = 80;
    which.spread = Spread::kDense;
    const Call near = ran(which, 151, 152);
    const Call call = make_call(which, 151, 152);
    const FarBlocks codes(call.cache), scales(call.scale);
    if (!codes.exist() || !scales.exist()) {
        MESSAGE("skipped: no address space for blocks that far apart here");
        return;
    }
    const std::vector<std::int64_t> code_table = codes.table(call.cachestarts, call.cache);
    const std::vector<std::int64_t> scale_table = scales.table(call.scalestarts, call.scale);
    Bound bound = bind(call);
    bound.batch.cachestarts.data = const_cast<std::int64_t*>(code_table.data());
    bound.batch.scalestarts.data = const_cast<std::int64_t*>(scale_table.data());
    REQUIRE(run_bound(bound, {}) == "");
    CHECK(call.attn_output.packed() == near.attn_output.packed());
    CHECK(call.lse.packed() == near.lse.packed());
    for (std::size_t i = 0; i < call.cache.size(); ++i) {
        const std::vector<std::byte> stored = near.cache[i].packed();
        CHECK(codes.bytes_of(i, stored.size()) == stored);
    }
}

TEST_CASE("block ids whose offset passes 2^31 elements, in either of two tensors") {
    constexpr std::int64_t kBlocks = std::int64_t{1} << 20;
    Case which = ragged(
        "op=MultiHeadCacheAttention,head_dim=128,group=2,t1=f16,cache_mode=block_table,page_size=16,index_type=i32,"
        "layout=NTHD");
    which.spread = Spread::kDense;
    const Call small = ran(which, 161, 162);
    const Call large = make_call(which, 161, 162);
    Bound bound = bind(large);
    const std::int64_t shift = kBlocks - bound.batch.num_blocks;
    REQUIRE(shift * large.cache[0].strided().strides[0] > std::int64_t{1} << 31);
    const std::size_t bytes = static_cast<std::size_t>(kBlocks * large.cache[0].strided().strides[0]) * 2;
    SparseMemory keys(bytes), values(bytes);
    if (!keys.exists() || !values.exists()) {
        MESSAGE("skipped: no address space for a large cache here");
        return;
    }
    const kvjit_tensor small_keys = bound.tensors.key_cache, small_values = bound.tensors.value_cache;
    bound.tensors.key_cache = widened(small_keys, 0, kBlocks, keys.data());
    bound.tensors.value_cache = widened(small_values, 0, kBlocks, values.data());
    copy_shifted(small_keys, bound.tensors.key_cache, 0, shift);
    copy_shifted(small_values, bound.tensors.value_cache, 0, shift);
    keys.show_written();
    values.show_written();
    bound.batch.num_blocks = kBlocks;
    std::vector<std::int32_t> entries;
    for (const double entry : numbers_of(large.cachestarts))
        entries.push_back(static_cast<std::int32_t>(entry < 0 ? entry : entry + static_cast<double>(shift)));
    bound.batch.cachestarts.data = entries.data();
    REQUIRE(run_bound(bound, {}) == "");
    CHECK(large.attn_output.packed() == small.attn_output.packed());
}

/// The cache's one tensor, or its two.
std::vector<kvjit_tensor*> caches_of(Bound& bound) {
    std::vector<kvjit_tensor*> caches;
    for (kvjit_tensor* each : {&bound.tensors.cache, &bound.tensors.key_cache, &bound.tensors.value_cache})
        if (each->data) caches.push_back(each);
    return caches;
}

std::size_t size_of(const kvjit_tensor& tensor) {
    return static_cast<std::size_t>(tensor.strides[0] * tensor.shape[0]) * bytes_of(tensor.dtype);
}

TEST_CASE("pieces of rows and of pages, and elements of a row, more than 2^31 bytes apart") {
    struct Far {
        std::string layout;
        std::size_t axis;     // of tokens or blocks
        std::int64_t length;  // of that axis
    };
    constexpr std::int64_t kTokens = 10'000'000, kBlocks = std::int64_t{1} << 20;
    // Apart: elements of a row, its pieces, blocks, pieces of a page, blocks again.
    for (const Far& far :
         {Far{"cache_mode=offset,layout=L2HDT", 4, kTokens}, Far{"cache_mode=offset,layout=DTHd8", 1, kTokens},
          Far{"cache_mode=block_table,page_size=12,layout=NHDTd8", 0, kBlocks},
          Far{"cache_mode=block_table,page_size=12,layout=THDNt4d8", 3, kBlocks},
          Far{"cache_mode=block_table,page_size=12,layout=2NTHDt6", 1, kBlocks}}) {
        CAPTURE(far.layout);
        Case which = ragged("op=KeyValueCache,head_dim=128,t1=f16," + far.layout);
        which.num_kv_heads = 3;
        which.spread = Spread::kDense;
        const Call small = ran(which, 171, 172);
        const Call large = make_call(which, 171, 172);
        Bound bound = bind(large);
        std::int64_t& length = far.length == kTokens ? bound.batch.max_tokens : bound.batch.num_blocks;
        const std::int64_t shift = far.length - length;
        std::vector<std::unique_ptr<SparseMemory>> memory;
        for (kvjit_tensor* cache : caches_of(bound)) {
            const kvjit_tensor near = *cache;
            *cache = widened(near, far.axis, far.length, nullptr);
            REQUIRE(size_of(*cache) > std::size_t{1} << 31);
            memory.push_back(std::make_unique<SparseMemory>(size_of(*cache)));
            if (!memory.back()->exists()) {
                MESSAGE("skipped: no address space for a large cache here");
                return;
            }
            cache->data = memory.back()->data();
            copy_shifted(near, *cache, far.axis, shift);
            memory.back()->show_written();
        }
        length = far.length;
        std::vector<std::int64_t> entries;
        for (const double entry : numbers_of(large.cachestarts))
            entries.push_back(static_cast<std::int64_t>(entry) + (entry < 0 ? 0 : shift));
        bound.batch.cachestarts.data = entries.data();
        REQUIRE(run_bound(bound, {}) == "");
        CHECK(large.key.packed() == small.key.packed());
        CHECK(large.value.packed() == small.value.packed());
    }
}

}  // namespace
}  // namespace kvjit::test

// Properties that hold whatever the numbers are.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "call/oracle.h"
#include "conformance/call.h"
#include "conformance/judge.h"
#include "conformance/options.h"
#include "conformance/parts.h"
#include "conformance/ragged.h"
#include "conformance/run_call.h"
#include "support/rng.h"

namespace kvjit::test {
namespace {

/// What attention wrote: bits of attn_output and lse.
std::vector<std::byte> bits_of(const Call& call) {
    std::vector<std::byte> bits = call.attn_output.packed();
    const auto lse = call.lse.packed();
    bits.insert(bits.end(), lse.begin(), lse.end());
    return bits;
}

/// `tensor` without its first `rows` rows of `axis`.
void skip(kvjit_tensor& tensor, int axis, std::int64_t rows) {
    if (tensor.data == nullptr || tensor.rank == 0) return;
    const std::int64_t elements = rows * tensor.strides[axis];
    tensor.data = static_cast<std::byte*>(tensor.data) + elements * static_cast<std::int64_t>(bytes_of(tensor.dtype));
    tensor.shape[axis] -= rows;
}

/// The starts of a batch that has one sequence of another call's batch.
struct OneSequence {
    std::int64_t seqstarts[2];
    std::int64_t kvstarts[2];
};

/// Sequence b of `call` as a call of its own, on the same memory.
Bound alone(const Call& call, std::int64_t b, OneSequence& starts) {
    Bound bound = bind(call);
    const Problem& problem = call.problem;
    starts = {{0, problem.new_tokens(b)}, {0, problem.kv_tokens(b)}};
    bound.batch.batch_size = 1;
    bound.batch.seqstarts = starts.seqstarts;
    bound.batch.kvstarts = starts.kvstarts;
    for (const void** array : {&bound.batch.start_pos, &bound.batch.rowstarts, &bound.batch.row_index}) {
        if (*array != nullptr) *array = static_cast<const std::int64_t*>(*array) + b;
    }
    const bool by_token = problem.spec.cache_mode == KVJIT_TOKEN_TABLE;
    const std::int64_t token = problem.kvstarts[static_cast<std::size_t>(b)];
    if (bound.batch.rowstarts == nullptr && bound.batch.row_index == nullptr) {
        skip(bound.batch.cachestarts, 0, by_token ? token : b);
    }
    bound.batch.decoding_batches = b < problem.decoding_batches ? 1 : 0;
    const std::int64_t row = problem.seqstarts[static_cast<std::size_t>(b)];
    kvjit_tensors& tensors = bound.tensors;
    for (kvjit_tensor* each :
         {&tensors.query, &tensors.current_key, &tensors.current_value, &tensors.attn_output, &tensors.lse}) {
        skip(*each, 0, row);
    }
    if (problem.spec.op == KVJIT_OP_MULTI_HEAD_ATTENTION) {
        skip(tensors.key, 0, token);
        skip(tensors.value, 0, token);
    }
    skip(tensors.attn_mask, tensors.attn_mask.rank - 2, row);
    skip(tensors.attn_mask, tensors.attn_mask.rank - 1, token);
    return bound;
}

TEST_CASE("batch, threads, executor order and what the stack held change no bit") {
    if (options().on_cuda()) return;  // a GPU has neither; its splits are the next test's
    for (const std::string& spec : attention_specs()) {
        CAPTURE(spec);
        const Case which = ragged(spec);
        const auto expected = bits_of(ran(which, 11, 12));
        for (const std::uint32_t threads : {1U, 2U, 3U, 8U}) {
            for (const Order order : {Order::kPool, Order::kSerial, Order::kReversed, Order::kShuffled}) {
                Case other = which;
                other.threads = threads;
                other.order = order;
                CAPTURE(threads);
                CAPTURE(static_cast<int>(order));
                CHECK(bits_of(ran(other, 11, 12)) == expected);
            }
        }
    }
}

TEST_CASE("a sequence alone gives the bits that it gives in a batch") {
    for (const std::string& spec : attention_specs()) {
        CAPTURE(spec);
        const Call together = ran(ragged(spec), 21, 22);
        const Call apart = make_call(ragged(spec), 21, 22);
        for (std::int64_t b = 0; b < apart.problem.batch_size(); ++b) {
            for (const std::uint32_t threads : {1U, 4U}) {
                OneSequence starts = {};
                REQUIRE(run_bound(alone(apart, b, starts), {threads, Order::kSerial, 1, KVJIT_CHECK_FULL}) == "");
            }
        }
        CHECK(bits_of(apart) == bits_of(together));
    }
}

TEST_CASE("permuting physical pages changes no bit") {
    for (const std::string& spec : attention_specs()) {
        CAPTURE(spec);
        const auto expected = bits_of(ran(ragged(spec), 31, 32));
        std::uint64_t placement = 33;
        for (const TableRows rows : {TableRows::kPadded, TableRows::kCsr, TableRows::kIndexed}) {
            Case which = ragged(spec);
            which.rows = rows;
            CHECK(bits_of(ran(which, 31, placement++)) == expected);
        }
    }
}

TEST_CASE("layouts and cache modes agree") {
    const std::string common = "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f32,";
    const Call expected = ran(ragged(common + "cache_mode=offset,layout=TL2HD"), 41, 42);
    for (const std::string layout :
         {"cache_mode=offset,layout=L2HTD", "cache_mode=token_table,layout=2LHTD", "cache_mode=page_table,layout=LHT2D",
          "cache_mode=block_table,layout=N2LTHD,page_size=16", "cache_mode=block_table,layout=N2HTD,page_size=1"}) {
        CAPTURE(layout);
        const Call other = ran(ragged(common + layout), 41, 43);
        CHECK(compare_close("attn_output", numbers_of(other.attn_output), numbers_of(expected.attn_output), 1e-5) ==
              "");
        CHECK(compare_close("lse", numbers_of(other.lse), numbers_of(expected.lse), 1e-5, 1) == "");
    }
}

TEST_CASE("pages that end one token before a vector does") {
    for (const std::string mode : {"cache_mode=page_table,layout=L2HTD", "cache_mode=block_table,layout=N2HTD"}) {
        for (const std::string size : {"15", "31"}) {
            for (const std::string type : {"f16", "bf16"}) {
                Case which = ragged("op=MultiHeadCacheAttention,head_dim=64,group=2," + mode + ",page_size=" + size +
                                    ",t1=" + type);
                which.new_tokens = NewTokens::kTileEdge;
                check_against_oracle(which, 46, 47);
            }
        }
    }
}

TEST_CASE("a sequence whose tokens several tasks store, into slots that the caller chose") {
    if (options().on_cuda()) return;  // a GPU's warps store a token each
    Case which = ragged("op=KeyValueCache,head_dim=256,t1=f32,t2=f16,cache_mode=page_table,page_size=16,layout=TL2HD");
    which.num_kv_heads = 32;
    which.new_tokens = NewTokens::kTileEdge;
    which.slots_by = SlotsBy::kChosen;
    which.threads = 2;
    which.batch_size = 1;
    const auto takes_several_tasks = [&](std::uint64_t seed) {
        return make_call(which, seed, 49).problem.new_tokens(0) >= 17;  // a task stores 64K elements: 8 tokens
    };
    check_against_oracle(which, find_seed(48, takes_several_tasks), 49);
}

TEST_CASE("more sequences than a warp has lanes") {
    for (const std::string spec : {"op=KeyValueCache,head_dim=8,t1=f32,layout=T2HD",
                                   "op=MultiHeadCacheAttention,head_dim=8,group=2,t1=f32,layout=T2HD"}) {
        for (const std::int64_t sequences : {33, 70, 1030}) {
            CAPTURE(sequences);
            Case which = ragged(spec);
            which.batch_size = sequences;
            which.new_tokens = NewTokens::kNoneOrOne;
            which.past_tokens = PastTokens::kFew;
            check_against_oracle(which, 50, 51);
        }
    }
}

// So many that a warp takes several of 7 kv heads, two, three or all: the first of emulated GPUs, the last of any GPU.
TEST_CASE("tokens of which a warp stores and loads several kv heads") {
    for (const std::string spec :
         {"op=KeyValueCache,head_dim=40,cache_mode=page_table,page_size=16,layout=L2HTD",
          "op=KeyValueCache,head_dim=64,quant_bit=8,cache_mode=block_pointers,page_size=12,layout=2LHTD",
          "op=KeyValueCache,head_dim=40,cache_mode=block_table,page_size=12,layout=NHDTd8,value_layout=NHDT"}) {
        for (const std::int64_t sequences : {40, 75, 500}) {
            CAPTURE(sequences);
            Case which = ragged(spec);
            which.num_kv_heads = 7;
            which.batch_size = sequences;
            which.new_tokens = NewTokens::kFew;
            which.past_tokens = PastTokens::kNone;
            which.num_repeat = 2;
            which.spread = Spread::kPadded;
            check_against_oracle(which, 52, 53);
        }
    }
}

TEST_CASE("a task that takes several kv heads of a short sequence in turn") {
    if (options().on_cuda()) return;  // a GPU's block takes one
    for (const std::string spec :
         {"op=MultiHeadCacheAttention,head_dim=64,group=2,layout=2HTD",
          "op=MultiHeadCacheAttention,head_dim=64,group=8,has_window=1,cache_mode=page_table,page_size=16,layout=L2HTD",
          "op=MultiHeadCacheAttention,head_dim=64,group=2,quant_bit=8,cache_mode=token_table,layout=2HTD",
          "op=MultiHeadCacheAttention,head_dim=128,group=1,quant_bit=8,quant_group=32,layout=2HTD",
          ("op=MultiHeadCacheAttention,head_dim=64,group=4,quant_bit=4,cache_mode=block_pointers,page_size=16,layout="
           "2HTD"),
          "op=MultiHeadCacheAttention,head_dim=40,group=4,is_alibi=1,cache_mode=block_table,page_size=16,layout=N2HTD",
          "op=MultiHeadAttention,head_dim=64,group=71"}) {
        for (const NewTokens tokens : {NewTokens::kNoneOrOne, NewTokens::kFew}) {
            Case which = ragged(spec);
            which.batch_size = 24;  // enough for tasks of 2 heads and of 3
            which.num_kv_heads = 3;
            which.threads = 1;
            which.new_tokens = tokens;
            check_against_oracle(which, 52, 53);
        }
    }
}

TEST_CASE("tasks that take unlike numbers of kv heads, in chunks of keys") {
    if (options().on_cuda()) return;  // a GPU's block takes one
    for (const std::string spec : {"op=MultiHeadCacheAttention,head_dim=64,group=2,layout=T2HD",
                                   "op=MultiHeadCacheAttention,head_dim=64,group=1,quant_bit=8,layout=T2HD"}) {
        Case which = ragged(spec);
        which.batch_size = 1;
        which.num_kv_heads = 5;
        which.past_tokens = PastTokens::kChunks;
        for (const NewTokens tokens : {NewTokens::kOne, NewTokens::kFew}) {
            which.new_tokens = tokens;
            // Concurrency decides how many heads a task takes: 3 and 2, 2, 2 and 1, or one each.
            for (which.threads = 1; which.threads <= 4; ++which.threads) check_against_oracle(which, 54, 55);
        }
    }
}

TEST_CASE("what the stride of a pool of one block is changes nothing") {
    Case which = ragged("op=MultiHeadCacheAttention,head_dim=64,cache_mode=block_table,layout=N2HTD,page_size=16");
    which.batch_size = 1;
    which.new_tokens = NewTokens::kFew;
    which.past_tokens = PastTokens::kNone;
    const auto has_one_block = [&](std::uint64_t seed) { return make_call(which, 44, seed).num_blocks == 1; };
    const std::uint64_t placement = find_seed(45, has_one_block);
    const Call call = make_call(which, 44, placement);
    Bound bound = bind(call);
    REQUIRE(call.problem.kvstarts.back() > 1);
    bound.tensors.cache.strides[0] = bound.tensors.cache.strides[3];  // a block's is a token's
    REQUIRE(run_bound(bound, {}) == "");
    CHECK(bits_of(call) == bits_of(ran(which, 44, placement)));
}

TEST_CASE("grouped heads equal replicated kv heads") {
    Case which = ragged("op=MultiHeadAttention,head_dim=64,group=4,t1=f32");
    which.num_kv_heads = 1;
    const Call grouped = ran(which, 51, 52);
    const Call replicated = make_call(which, 51, 52);
    Bound bound = bind(replicated);
    bound.spec.group = 1;
    bound.batch.num_kv_heads = bound.batch.num_heads;
    for (kvjit_tensor* each : {&bound.tensors.key, &bound.tensors.value}) {
        each->shape[1] = bound.batch.num_heads;
        each->strides[1] = 0;
    }
    REQUIRE(run_bound(bound, {}) == "");
    CHECK(compare_close("attn_output", numbers_of(replicated.attn_output), numbers_of(grouped.attn_output), 1e-5) ==
          "");
}

/// Parts: the first is empty, the third and the last have many keys, all others one. Sinks count once: they are
/// Merge's, not the parts'.
void check_merged(const std::string& type, std::int64_t parts) {
    Case which = ragged("op=MultiHeadAttention,head_dim=64,group=2,is_causal=0,t1=" + type);
    which.batch_size = 1;
    which.new_tokens = NewTokens::kFew;
    which.past_tokens = PastTokens::kChunks;
    const auto is_longer_than_cuts = [&](std::uint64_t seed) {
        return make_call(which, seed, 62).problem.kvstarts.back() > 600 + parts;
    };
    const std::uint64_t seed = find_seed(61, is_longer_than_cuts);
    const Call whole = ran(which, seed, 62);
    const Problem& problem = whole.problem;
    const std::int64_t tokens = problem.seqstarts.back();
    std::vector<std::int64_t> cuts = {0, 0, 1};
    for (std::int64_t cut = 600; std::ssize(cuts) < parts; ++cut) cuts.push_back(cut);
    cuts.push_back(problem.kvstarts.back());
    const Parts made(problem, parts);
    for (std::int64_t part = 0; part < parts; ++part) {
        Bound bound = bind(whole);
        bound.spec.has_sinks = 0;
        bound.tensors.sinks = {};
        const std::int64_t begin = cuts[static_cast<std::size_t>(part)];
        const std::int64_t kvstarts[2] = {0, cuts[static_cast<std::size_t>(part) + 1] - begin};
        bound.batch.kvstarts = kvstarts;
        skip(bound.tensors.key, 0, begin);
        skip(bound.tensors.value, 0, begin);
        const auto drop_part = [&](kvjit_tensor view) {
            skip(view, 0, part);
            view.rank -= 1;
            std::copy(view.shape + 1, view.shape + KVJIT_MAX_RANK, view.shape);
            std::copy(view.strides + 1, view.strides + KVJIT_MAX_RANK, view.strides);
            return view;
        };
        bound.tensors.attn_output = drop_part(made.outputs.view());
        bound.tensors.lse = drop_part(made.lses.view());
        REQUIRE(run_bound(bound, {}) == "");
    }
    const Call merged = make_call(which, seed, 62);
    const Bound merge = made.merge_into(merged);
    const double tolerance = tolerance_of(which.spec.t1);
    // The empty part's lse: as kvjit writes it, and as others do.
    for (const float infinity : {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()}) {
        CAPTURE(infinity);
        std::fill_n(static_cast<float*>(made.lses.view().data), tokens * problem.num_heads, infinity);
        REQUIRE(run_bound(merge, {}) == "");
        CHECK(compare_close("attn_output", numbers_of(merged.attn_output), numbers_of(whole.attn_output), tolerance) ==
              "");
        CHECK(compare_close("lse", numbers_of(merged.lse), numbers_of(whole.lse), tolerance, 1) == "");
    }
}

TEST_CASE("attention over parts of the keys, merged, equals attention over all") {
    for (const std::string type : {"f32", "f16", "f32,has_sinks=1", "f16,has_sinks=1"}) {
        CAPTURE(type);
        for (const std::int64_t parts : {5, 35}) {  // a GPU's warp takes 32 together, by fours
            CAPTURE(parts);
            check_merged(type, parts);
        }
    }
}

/// exp(lse_i - lse) output_i, summed over all parts, with lse = log of the sum of exp(lse_i): docs/semantics.md,
/// section 2.
void check_against_parts(const Call& merged, const Parts& made) {
    const Strided &parts = made.outputs.strided(), &lses = made.lses.strided();
    const Strided &output = merged.attn_output.strided(), &lse = merged.lse.strided();
    double worst = 0;
    for (std::int64_t token = 0; token < merged.problem.seqstarts.back(); ++token) {
        for (std::int64_t head = 0; head < merged.problem.num_heads; ++head) {
            double sum = 0, element[64] = {};
            for (std::int64_t part = 0; part < parts.shape[0]; ++part) {
                const double weight = std::exp(read_element(lses.data, lses.dtype, lses.index(part, token, head)));
                sum += weight;
                for (int d = 0; d < 64; ++d)
                    element[d] += weight * read_element(parts.data, parts.dtype, parts.index(part, token, head, d));
            }
            const auto see = [&](const Strided& of, std::int64_t at, double expected) {
                const double off = std::fabs(read_element(of.data, of.dtype, at) - expected);
                if (!(off <= worst) && !std::isnan(worst)) worst = off;  // a NaN stays
            };
            for (int d = 0; d < 64; ++d) see(output, output.index(token, head, d), element[d] / sum);
            see(lse, lse.index(token, head), std::log(sum));
        }
    }
    CHECK(worst <= 1e-5);
}

TEST_CASE("Merge of more rows than a task or a block takes at once") {
    Case which = ragged("op=MultiHeadAttention,head_dim=64,group=1,t1=f32");
    which.batch_size = 9;
    which.num_kv_heads = 2;
    which.new_tokens = NewTokens::kTileEdge;
    Call merged = make_call(which, 67, 68);
    REQUIRE(merged.problem.seqstarts.back() > 256);
    Parts made(merged.problem, 3);
    made.draw(69);
    for (const std::uint32_t threads : {1U, 2U, 7U}) {
        REQUIRE(run_bound(made.merge_into(merged), {.threads = threads}) == "");
        check_against_parts(merged, made);
    }
}

TEST_CASE("a NaN in the output of a part without keys makes its element of Merge NaN, and no other") {
    for (const std::string type : {"f32", "f16,has_sinks=1"}) {
        for (const double beside : {1.0, -HUGE_VAL}) {  // the other parts' lse
            CAPTURE(type);
            CAPTURE(beside);
            Case which = ragged("op=MultiHeadAttention,head_dim=64,group=2,t1=" + type);
            which.batch_size = 1;
            which.new_tokens = NewTokens::kFew;
            const Call merged = make_call(which, 65, 66);
            Parts made(merged.problem, 3);
            made.outputs.fill([] { return 0.5; });
            made.lses.fill([&] { return beside; });
            made.lses.set(made.lses.strided().index(1, 0, 1), -HUGE_VAL);
            made.outputs.set(made.outputs.strided().index(1, 0, 1, 9), std::nan(""));
            REQUIRE(run_bound(made.merge_into(merged), {}) == "");
            const std::vector<double> output = numbers_of(merged.attn_output);
            for (std::size_t i = 0; i < output.size(); ++i) CHECK(std::isnan(output[i]) == (i == 64 + 9));
        }
    }
}

TEST_CASE("a NaN lse makes its row of Merge NaN, and no other row") {
    for (const std::string type : {"f32", "f16,has_sinks=1"}) {
        for (const std::int64_t parts : {1, 2, 35}) {
            for (const double beside :
                 {1.0, -HUGE_VAL, HUGE_VAL}) {  // the row's other parts; infinite: they saw no key
                CAPTURE(type);
                CAPTURE(parts);
                CAPTURE(beside);
                Case which = ragged("op=MultiHeadAttention,head_dim=64,group=2,t1=" + type);
                which.batch_size = 1;
                which.new_tokens = NewTokens::kFew;
                const Call merged = make_call(which, 63, 64);
                Parts made(merged.problem, parts);
                made.outputs.fill([] { return 0.5; });
                made.lses.fill([&] { return beside; });
                made.lses.set(made.lses.strided().index(parts / 2, 0, 1), std::nan(""));
                REQUIRE(run_bound(made.merge_into(merged), {}) == "");
                constexpr std::size_t kRow = 1;  // token 0's, of query head 1
                const std::vector<double> lse = numbers_of(merged.lse), output = numbers_of(merged.attn_output);
                for (std::size_t i = 0; i < lse.size(); ++i) {
                    const bool is_row = i == kRow;
                    CHECK(std::isnan(lse[i]) == is_row);
                    for (std::size_t d = 0; d < 64; ++d) CHECK(std::isnan(output[64 * i + d]) == is_row);
                }
            }
        }
    }
}

/// Leaves a tensor `rows` rows, one less than the batch has; what the refusal says.
std::string shortened(kvjit_tensor& tensor, const std::string& name, int axis, std::int64_t rows) {
    tensor.shape[axis] = rows;
    return name + ".shape[" + std::to_string(axis) + "] is " + std::to_string(rows) + "; axis S takes at least " +
           std::to_string(rows + 1);
}

/// The bytes of `whole` before row `end` of its `rows`, and those of `before` from there on.
std::vector<std::byte> joined(const std::vector<std::byte>& whole, const std::vector<std::byte>& before,
                              std::int64_t end, std::int64_t rows) {
    std::vector<std::byte> bytes = before;
    std::copy_n(whole.begin(), std::ssize(whole) / rows * end, bytes.begin());
    return bytes;
}

TEST_CASE("Merge over a tensor that lacks a row is refused; where only a GPU knows, it writes the rows that all have") {
    Case which = ragged("op=MultiHeadAttention,head_dim=64,group=2,t1=f32");
    which.batch_size = 1;
    which.new_tokens = NewTokens::kFew;
    // A GPU's block has 8 warps, one for each row and head: of an odd number of rows some of the last one's have no
    // row.
    const auto has_even_rows = [&](std::uint64_t seed) {
        return make_call(which, seed, 68).problem.seqstarts.back() % 2 == 0;
    };
    const std::uint64_t seed = find_seed(67, has_even_rows);
    const Call whole = make_call(which, seed, 68);
    const std::int64_t rows = whole.problem.seqstarts.back();
    REQUIRE((rows > 1 && whole.problem.num_heads == 4));
    Parts made(whole.problem, 3);
    Rng rng(69);
    for (Placed* each : {&made.outputs, &made.lses}) each->fill([&] { return rng.normal(); });
    REQUIRE(run_bound(made.merge_into(whole), {}) == "");
    REQUIRE(std::ranges::none_of(numbers_of(whole.attn_output), [](double x) { return std::isnan(x); }));
    struct Lacking {
        const char* name;
        kvjit_tensor kvjit_tensors::* tensor;
        int axis;  // of rows
    };
    for (const Lacking& each :
         {Lacking{"partial_output", &kvjit_tensors::partial_output, 1},
          Lacking{"partial_lse", &kvjit_tensors::partial_lse, 1},
          Lacking{"attn_output", &kvjit_tensors::attn_output, 0}, Lacking{"lse", &kvjit_tensors::lse, 0}}) {
        CAPTURE(each.name);
        const Call merged = make_call(which, seed, 68);
        const std::vector<std::byte> output = merged.attn_output.packed(), lse = merged.lse.packed();
        Bound merge = made.merge_into(merged);
        merge.batch.max_seqlen = merge.batch.max_kvlen = rows;
        const std::string refusal = shortened(merge.tensors.*each.tensor, each.name, each.axis, rows - 1);
        const std::string error = run_bound(merge, {});
        CHECK_MESSAGE(error.find("KVJIT_BAD_SHAPE: " + refusal) != std::string::npos, error);
        CHECK(merged.attn_output.packed() == output);
        CHECK(merged.lse.packed() == lse);
        if (!options().on_cuda()) continue;
        CHECK(run_bound(merge, {.device_checks = true}) == "");
        CHECK(merged.attn_output.packed() == joined(whole.attn_output.packed(), output, rows - 1, rows));
        CHECK(merged.lse.packed() == joined(whole.lse.packed(), lse, rows - 1, rows));
    }
}

TEST_CASE("a window of any width hides what lies before it, and nothing else") {
    for (const char* spec :
         {"op=MultiHeadAttention,head_dim=64,group=4,t1=f16,has_window=1",
          "op=MultiHeadAttention,head_dim=64,group=4,t1=bf16,has_window=1",
          "op=MultiHeadCacheAttention,head_dim=64,group=1,t1=f32,cache_mode=page_table,page_size=16,has_window=1"}) {
        for (std::int64_t left = 0; left <= 70; ++left) {
            CAPTURE(spec);
            CAPTURE(left);
            Case which = ragged(spec);
            which.batch_size = 1;
            which.new_tokens = NewTokens::kFew;
            which.past_tokens = PastTokens::kVectorEdge;
            which.window_left = left;
            which.window_right = -1;
            const auto has_keys_before_window = [&](std::uint64_t seed) {
                return make_call(which, seed, 72).problem.kvstarts.back() > 60;
            };
            check_against_oracle(which, find_seed(71, has_keys_before_window), 72);
        }
    }
}

TEST_CASE("prefill equals token-by-token decode") {
    for (std::size_t i = 0; i < 4; ++i) {
        CAPTURE(attention_specs()[i]);
        Case which = ragged(attention_specs()[i]);
        which.batch_size = 1;
        which.new_tokens = NewTokens::kTileEdge;
        const Call prefill = ran(which, 71, 72);
        const Call decode = make_call(which, 71, 72);
        const std::int64_t n = decode.problem.new_tokens(0);
        for (std::int64_t token = 0; token < n; ++token) {
            Bound bound = bind(decode);
            const std::int64_t past = decode.problem.start_pos[0] + token;
            const std::int64_t seqstarts[2] = {0, 1};
            const std::int64_t kvstarts[2] = {0, past + 1};
            bound.batch.seqstarts = seqstarts;
            bound.batch.kvstarts = kvstarts;
            bound.batch.start_pos = &past;
            if (which.spec.cache_mode == KVJIT_TOKEN_TABLE) bound.batch.cachestarts.shape[0] = past + 1;
            for (kvjit_tensor* each : {&bound.tensors.query, &bound.tensors.current_key, &bound.tensors.current_value,
                                       &bound.tensors.attn_output, &bound.tensors.lse}) {
                skip(*each, 0, token);
            }
            REQUIRE(run_bound(bound, {}) == "");
        }
        CHECK(decode.cache[0].packed() == prefill.cache[0].packed());
        const double tolerance = tolerance_of(which.spec.t1);
        CHECK(compare_close("attn_output", numbers_of(decode.attn_output), numbers_of(prefill.attn_output),
                            tolerance) == "");
        CHECK(compare_close("lse", numbers_of(decode.lse), numbers_of(prefill.lse), tolerance, 1) == "");
    }
}

}  // namespace
}  // namespace kvjit::test

// Plans that store nothing: sequences that share slots, more new tokens than keys.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/call.h"
#include "conformance/judge.h"
#include "conformance/ragged.h"
#include "conformance/run_call.h"

namespace kvjit::test {
namespace {

struct Cached {
    std::string mode, layout;
};
struct Quantised {
    std::string text, t1;
};

const std::vector<Cached> kCached = {{"offset", "TL2HD"},
                                     {"token_table", "2LHTD"},
                                     {"page_table,page_size=16", "L2HTD"},
                                     {"block_table,page_size=7", "N2LTHD"}};
/// With float32 a loaded key is the dequantised one, to the last bit.
const std::vector<Quantised> kQuantised = {
    {"", "f16"}, {",quant_bit=8,quant_group=16", "f32"}, {",quant_bit=4,quant_group=8", "f32"}};

Case reader(const std::string& spec) {
    Case which = ragged("op=MultiHeadCacheAttention,head_dim=64,group=3," + spec);
    which.stores = Stores::kNever;
    which.rows = TableRows::kIndexed;
    return which;
}

template <class Body>
void each_cache(Body body) {
    for (const auto& [mode, layout] : kCached) {
        for (const auto& [quantised, t1] : kQuantised) {
            const std::string spec = "t1=" + t1 + ",cache_mode=" + mode + ",layout=" + layout + quantised;
            CAPTURE(spec);
            body(spec);
        }
    }
}

constexpr RunOptions kStoresNothing = {.stores_nothing = true};

Placed contiguous(int dtype, const std::vector<std::int64_t>& shape) {
    Rng unused(1);
    return {dtype, shape, spread_strides(shape, Spread::kDense, unused), Guard::kAfter};
}

/// (K, Hkv, D): what KeyValueCache loads of the call's cache.
struct Loaded {
    Placed key, value;

    explicit Loaded(const Call& call) {
        const kvjit_spec& spec = call.which.spec;
        const std::vector<std::int64_t> shape = {call.problem.kvstarts.back(), call.problem.num_kv_heads,
                                                 spec.head_dim};
        key = contiguous(spec.t1, shape);
        value = contiguous(spec.t1, shape);
        Bound load = bind(call);
        REQUIRE(kvjit_spec_for_op(&load.spec, KVJIT_OP_KEY_VALUE_CACHE, &load.spec, nullptr) == KVJIT_OK);
        load.tensors.query = load.tensors.attn_output = load.tensors.lse = {};
        load.tensors.key = key.view();
        load.tensors.value = value.view();
        REQUIRE(run_bound(load, kStoresNothing) == "");
    }
};

TEST_CASE("attention over a cache that is shared equals attention over the loaded keys") {
    each_cache([](const std::string& spec) {
        const Call call = check_against_oracle(reader(spec), 101, 102);
        const Loaded loaded(call);
        const Placed output = contiguous(call.which.spec.t1, call.attn_output.strided().shape);
        const Placed lse = contiguous(KVJIT_F32, call.lse.strided().shape);
        Bound dense = bind(call);
        dense.spec = spec_of("op=MultiHeadAttention,head_dim=64,group=3");
        dense.spec.t1 = call.which.spec.t1;
        dense.tensors.cache = dense.tensors.scale = {};
        dense.tensors.key = loaded.key.view();
        dense.tensors.value = loaded.value.view();
        dense.tensors.attn_output = output.view();
        dense.tensors.lse = lse.view();
        REQUIRE(run_bound(dense, {}) == "");
        const double tolerance = tolerance_of(call.which.spec.t1);
        CHECK(compare_close("attn_output", numbers_of(call.attn_output), numbers_of(output), tolerance) == "");
        CHECK(compare_close("lse", numbers_of(call.lse), numbers_of(lse), tolerance, 1) == "");
    });
}

std::int64_t longest_of(const Problem& problem) {
    std::int64_t longest = 0;
    for (std::int64_t b = 1; b < problem.batch_size(); ++b) {
        if (problem.kv_tokens(b) > problem.kv_tokens(longest)) longest = b;
    }
    return longest;
}

/// The entries of sequence b, once for each sequence. For tables without rows to choose from.
std::vector<std::int64_t> repeated_entries(const Problem& problem, std::int64_t b) {
    const bool by_token = problem.spec.cache_mode == KVJIT_TOKEN_TABLE;
    const auto first = problem.cachestarts.begin() + (by_token ? problem.kvstarts[Problem::at(b)] : b);
    const std::int64_t count = by_token ? problem.kv_tokens(b) : 1;
    std::vector<std::int64_t> table;
    for (std::int64_t copies = problem.batch_size(); copies > 0; --copies) {
        table.insert(table.end(), first, first + count);
    }
    return table;
}

/// Every sequence reads what the longest one does: its whole row, to the token in the middle of the last page.
Call beams(const Case& which, std::uint64_t seed) {
    Call call = make_call(which, seed, 112);
    Problem& problem = call.problem;
    const std::int64_t longest = longest_of(problem);
    const std::int64_t keys = problem.kv_tokens(longest);
    if (problem.row_index.empty()) {
        problem.cachestarts = repeated_entries(problem, longest);
        call.cachestarts = Placed::integers(problem.cachestarts, which.spec.index_type, Guard::kAfter);
    } else {
        problem.row_index.assign(problem.row_index.size(), std::int64_t{problem.row_index[Problem::at(longest)]});
        call.row_index = Placed::integers(problem.row_index, which.spec.starts_type, Guard::kAfter);
    }
    for (std::int64_t b = 1; b <= which.batch_size; ++b) problem.kvstarts[Problem::at(b)] = b * keys;
    call.kvstarts = Placed::integers(problem.kvstarts, which.spec.starts_type, Guard::kAfter);
    return call;
}

TEST_CASE("beams read one row, its partially filled last page included; plans that may store refuse them") {
    each_cache([](const std::string& spec) {
        Case which = reader(spec);
        which.new_tokens = NewTokens::kOne;
        const auto last_page_has_room = [&](std::uint64_t seed) {
            return beams(which, seed).problem.kvstarts[1] % which.spec.page_size != 0;
        };
        Call call = beams(which, find_seed(111, last_page_has_room));
        check_against_oracle(call);
        Bound storing = bind(call);
        std::vector<std::int64_t> start_pos(static_cast<std::size_t>(which.batch_size), call.problem.kvstarts[1] - 1);
        storing.batch.start_pos = start_pos.data();
        const std::string refusal = run_bound(storing, {});
        CHECK(refusal.starts_with("kvjit_plan_create: KVJIT_BAD_INDEX: cachestarts sends two new tokens"));
        CHECK(refusal.contains("unless options.stores_nothing is 1"));
        CHECK(refusal.ends_with(" [found by KVJIT_CHECK_FULL]"));
    });
}

TEST_CASE("the last row sees the last key, and rows that no key is left for give 0 and -inf") {
    each_cache([](const std::string& spec) {
        Case which = reader(spec);
        which.batch_size = 1;
        which.new_tokens = NewTokens::kTileEdge;
        const auto has_blind_rows = [&](std::uint64_t seed) {
            const Problem problem = make_call(which, seed, 122).problem;
            return problem.kv_tokens(0) > 0 && problem.kv_tokens(0) < problem.new_tokens(0);
        };
        const Call call = check_against_oracle(which, find_seed(121, has_blind_rows), 122);
        const std::int64_t blind = call.problem.new_tokens(0) - call.problem.kv_tokens(0);
        for (std::int64_t h = 0; h < call.problem.num_heads; ++h) {
            for (std::int64_t i = 0; i < blind; ++i) {
                CHECK(call.lse.strided().at(i, h) == -INFINITY);
                for (std::int64_t d = 0; d < 64; ++d) CHECK(call.attn_output.strided().at(i, h, d) == 0);
            }
            CHECK(std::isfinite(call.lse.strided().at(blind, h)));
        }
    });
}

TEST_CASE("kv heads that a view of the cache repeats equal a larger group") {
    Case which = reader("t1=f32,cache_mode=offset,layout=TL2HD");
    which.num_kv_heads = 1;
    const Call grouped = ran(which, 131, 132);
    const Call repeated = make_call(which, 131, 132);
    Bound bound = bind(repeated);
    bound.spec.group = 1;
    bound.batch.num_kv_heads = bound.batch.num_heads;
    bound.tensors.cache.shape[3] = bound.batch.num_heads;
    bound.tensors.cache.strides[3] = 0;
    REQUIRE(run_bound(bound, kStoresNothing) == "");
    CHECK(compare_close("attn_output", numbers_of(repeated.attn_output), numbers_of(grouped.attn_output), 1e-5) == "");
}

}  // namespace
}  // namespace kvjit::test

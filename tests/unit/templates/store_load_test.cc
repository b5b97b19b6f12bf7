// store and load, each case of CMakeLists.txt, byte for byte against scalar arithmetic (docs/semantics.md, sections 5,
// 6).
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cache_call.h"
#include "levels.h"
#include "numbers.h"

#define X(name) extern "C" const kvjit::test::CachePrograms programs_##name;
#include "cache_cases.inc"
#undef X

using namespace kvjit;
using namespace kvjit::test;
using abi::i64;

namespace {

const std::vector<const CachePrograms*> kCases = {
#define X(name) &programs_##name,
#include "cache_cases.inc"
#undef X
};

using Bytes = std::vector<std::byte>;

/// Section 6: one group of a row.
void expect_group(const CachePrograms& p, std::byte* codes, std::byte* scales, const std::byte* row, i64 group) {
    const float qmax = p.quant_bit == 8 ? 127 : 7;
    const i64 first = group * p.quant_group, end = first + p.quant_group;
    float largest = 0;
    bool finite = true;
    for (i64 i = first; i < end; ++i) {
        finite = finite && std::isfinite(get(row, p.t1, i));
        largest = std::max(largest, std::fabs(get(row, p.t1, i)));
    }
    float wanted = std::max(largest / qmax, 1e-5f);
    if (p.t3 != Type::kF32) wanted = std::min(wanted, p.t3 == Type::kF16 ? 65504.0f : 0x1.fep127f);
    put(scales, p.t3, group, finite ? wanted : kNaN);
    const float scale = get(scales, p.t3, group);
    for (i64 i = first; i < end; ++i) {
        const float code = std::clamp(std::nearbyint(get(row, p.t1, i) / scale), -qmax, qmax);
        put_code(codes, p.t2, i, finite ? static_cast<int>(code) : 0);
    }
}

void expect_stored(const CachePrograms& p, std::byte* to, std::byte* scales, const std::byte* from) {
    if (p.quant_bit) {
        for (i64 g = 0; g < p.head_dim / p.quant_group; ++g) expect_group(p, to, scales, from, g);
    } else if (p.t1 == p.t2) {
        std::memcpy(to, from, static_cast<std::size_t>(bytes_of(p.t1, p.head_dim)));
    } else {
        for (i64 i = 0; i < p.head_dim; ++i) put(to, p.t2, i, get(from, p.t1, i));
    }
}

void expect_loaded(const CachePrograms& p, std::byte* to, const std::byte* from, const std::byte* scales) {
    if (!p.quant_bit) {
        CachePrograms swapped = p;
        std::swap(swapped.t1, swapped.t2);
        return expect_stored(swapped, to, nullptr, from);
    }
    for (i64 i = 0; i < p.head_dim; ++i)
        put(to, p.t1, i, static_cast<float>(get_code(from, p.t2, i)) * get(scales, p.t3, i / p.quant_group));
}

/// One NaN for all: which of them a conversion or a product gives is nobody's contract.
void unify_nans(Bytes& bytes, const Grid& grid, Type type, i64 elements) {
    if (type == Type::kI8 || type == Type::kI4) return;
    for (i64 r = 0; r < grid.rows; ++r)
        for (i64 c = 0; c < grid.columns; ++c)
            for (i64 i = 0; i < elements; ++i)
                if (std::isnan(get(bytes.data() + grid.at(r, c), type, i)))
                    put(bytes.data() + grid.at(r, c), type, i, kNaN);
}

/// Gaps between rows and rows that the call has nothing to do with included.
void check_same(const Pair& pair, Bytes (&wanted)[2], Type type, i64 elements) {
    for (int kv = 0; kv < 2; ++kv) {
        Bytes got = pair.buffer[kv].snapshot();
        unify_nans(got, pair.grid, type, elements);
        unify_nans(wanted[kv], pair.grid, type, elements);
        CHECK(got == wanted[kv]);
        CHECK(pair.buffer[kv].slack_is_whole());
    }
}

void check_store(CacheCall& call) {
    const CachePrograms& p = call.programs;
    Bytes cache[2] = {call.cache.buffer[0].snapshot(), call.cache.buffer[1].snapshot()};
    Bytes scale[2] = {call.scale.buffer[0].snapshot(), call.scale.buffer[1].snapshot()};
    for (int kv = 0; kv < 2; ++kv)
        for (std::size_t b = 0; b < call.sequences.size(); ++b)
            for (i64 i = 0; i < call.sequences[b].count; ++i)
                for (i64 h = 0; h < call.heads; ++h) {
                    const i64 slot = call.slots[b][static_cast<std::size_t>(call.start_pos[b] + i)];
                    expect_stored(p, cache[kv].data() + call.cache.grid.at(slot, h),
                                  scale[kv].data() + call.scale.grid.at(slot, h),
                                  call.input.row(kv, call.seqstarts[b] + i, h));
                }
    const abi::StoreArgs args{.cache = call.planes(),
                              .key_pieces = {},
                              .value_pieces = {},
                              .table = call.table(),
                              .key = call.input.rows(0),
                              .value = call.input.rows(1),
                              .seqstarts = {call.seqstarts.data(), false},
                              .keys = {{call.kvstarts.data(), false}, {}, {}, {}, 0},
                              .slots = {},
                              .slot_tokens = 0};
    call.for_each_item(true, [&](const abi::TokenItem& item) { p.store(&args, &item); });
    check_same(call.cache, cache, p.t2, p.head_dim);
    if (p.quant_bit) check_same(call.scale, scale, p.t3, p.head_dim / p.quant_group);
}

/// `asked`: which of key and value the caller wants.
void check_load(CacheCall& call, bool (&&asked)[2]) {
    const CachePrograms& p = call.programs;
    Bytes output[2] = {call.output.buffer[0].snapshot(), call.output.buffer[1].snapshot()};
    for (int kv = 0; kv < 2; ++kv)
        for (std::size_t b = 0; asked[kv] && b < call.sequences.size(); ++b)
            for (i64 t = 0; t < call.sequences[b].end(); ++t)
                for (i64 h = 0; h < call.heads * call.num_repeat; ++h) {
                    const i64 slot = call.slots[b][static_cast<std::size_t>(t)];
                    expect_loaded(p, output[kv].data() + call.output.grid.at(call.kvstarts[b] + t, h),
                                  call.cache.row(kv, slot, h / call.num_repeat),
                                  p.quant_bit ? call.scale.row(kv, slot, h / call.num_repeat) : nullptr);
                }
    abi::LoadArgs args{.cache = call.planes(),
                       .key_pieces = {},
                       .value_pieces = {},
                       .table = call.table(),
                       .key = call.output.rows(0),
                       .value = call.output.rows(1),
                       .keys = {{call.kvstarts.data(), false}, {}, {}, {}, 0},
                       .num_repeat = call.num_repeat};
    if (!asked[0]) args.key.base = nullptr;
    if (!asked[1]) args.value.base = nullptr;
    call.for_each_item(false, [&](const abi::TokenItem& item) { p.load(&args, &item); });
    check_same(call.output, output, p.t1, p.head_dim);
}

template <class F>
void for_each_call(F&& f) {
    for (const CachePrograms* programs : kCases) {
        if (!runs_level(programs->level)) continue;
        for (std::uint64_t seed = 1; seed <= 12; ++seed) {
            CAPTURE(std::string(programs->name));
            CAPTURE(seed);
            CacheCall call(*programs, seed);
            f(call);
        }
    }
}

}  // namespace

TEST_CASE("store writes each new token's codes and scales to its slot, and nothing else") {
    for_each_call([](CacheCall& call) { check_store(call); });
}

TEST_CASE("load reads back every position, whatever bits the cache holds") {
    for_each_call([](CacheCall& call) { check_load(call, {true, true}); });
}

TEST_CASE("load leaves an output out that nobody asked for") {
    for_each_call([](CacheCall& call) {
        check_load(call, {true, false});
        check_load(call, {false, true});
    });
}

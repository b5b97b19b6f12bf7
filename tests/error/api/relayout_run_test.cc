// Relayouts whose run is refused, and those that run: a refused one changes nothing.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "relayout_misuse.h"

namespace kvjit::test {
namespace {

constexpr RelayoutMisuse kRuns[] = {
    {"layer below 0", kPages, kBlocks, [](RelayoutCase& c) { c.from_layer = -1; }, bad_argument("from_layer", -1, 0)},
    {"layers past the last", kPages, kBlocks, [](RelayoutCase& c) { c.to_layer = 1; }, bad_argument("to_layer", 1, 0)},
    {"a layer past the last", kPages, kBlocks,
     [](RelayoutCase& c) { c.relayout.num_layers = 1, c.from_layer = INT64_MAX; },
     bad_argument("from_layer", INT64_MAX, 1)},
    {"no cache to read", kPages, kBlocks, [](RelayoutCase& c) { c.read.cache = {}; }, bad_argument("from.cache")},
    {"no cache to write", kPages, kBlocks, [](RelayoutCase& c) { c.written.cache = {}; }, bad_argument("to.cache")},
    {"null cache", kPages, kBlocks, [](RelayoutCase& c) { c.written.cache.data = nullptr; },
     bad_argument("to.cache.data")},
    {"misaligned cache", kPages, kBlocks,
     [](RelayoutCase& c) { c.read.cache.data = static_cast<char*>(c.read.cache.data) + 2; },
     bad_argument("from.cache.data", 2, 4)},
    {"no scales", kPages, kQuantised, [](RelayoutCase& c) { c.written.scale = {}; }, bad_argument("to.scale")},
    {"scales of a cache without any", kQuantised, kBlocks, [](RelayoutCase& c) { c.written.scale = c.written.cache; },
     bad_argument("to.scale")},
    {"no values", kApart, kBlocks, [](RelayoutCase& c) { c.read.value_cache = {}; }, bad_argument("from.value_cache")},
    {"one tensor where there are two", kPages, kApart,
     [](RelayoutCase& c) { c.written.cache = c.written.key_cache, c.written.key_cache = {}; },
     bad_argument("to.cache")},
    {"a cache where blocks have addresses", kPages, kPointers, [](RelayoutCase& c) { c.written.cache = c.read.cache; },
     bad_argument("to.cache")},
    {"queries", kPages, kBlocks, [](RelayoutCase& c) { c.read.query = c.read.cache; }, bad_argument("from.query")},
    {"new keys", kPages, kBlocks, [](RelayoutCase& c) { c.written.current_key = c.written.cache; },
     bad_argument("to.current_key")},
    {"another type", kPages, kBlocks, [](RelayoutCase& c) { c.written.cache.dtype = KVJIT_F16; },
     bad_dtype("to.cache.dtype", KVJIT_F16, KVJIT_F32)},
    {"another rank", kPages, kBlocks, [](RelayoutCase& c) { c.read.cache.rank = 4; },
     bad_shape("from.cache.rank", 4, 5)},
    {"another extent", kPages, kBlocks, [](RelayoutCase& c) { --c.written.cache.shape[0]; },
     bad_shape("to.cache.shape[0]", 7, 8)},
    {"elements that overlap", kPages, kBlocks, [](RelayoutCase& c) { c.written.cache.strides[0] = 16; },
     bad_shape("to.cache.strides[0]", 16, 32)},
    {"a reserved word", kPages, kBlocks, [](RelayoutCase& c) { c.read.cache.reserved[1] = 7; },
     bad_argument("from.cache.reserved", 7, 0)},
    {"two caches that begin together", kPages, kOffset,
     [](RelayoutCase& c) { c.written.cache.data = c.read.cache.data; }, bad_argument("to.cache")},
    {"a cache that begins in the other one", kOffset, kOffset,
     [](RelayoutCase& c) { c.written.cache.data = static_cast<char*>(c.read.cache.data) + 64; },
     bad_argument("to.cache")},
    {"values written where keys are read", kApart, kApart,
     [](RelayoutCase& c) { c.written.value_cache.data = c.read.key_cache.data; }, bad_argument("to.value_cache")},
    {"keys and values written to one place", kPages, kApart,
     [](RelayoutCase& c) { c.written.value_cache.data = c.written.key_cache.data; }, bad_argument("to.key_cache")},
    {"scales written where codes are read", kOffset, kQuantised,
     [](RelayoutCase& c) { c.written.scale.data = c.read.cache.data; }, bad_argument("to.scale")},
    {"the same slots of one cache", kOffset, kOffset, [](RelayoutCase& c) { c.written = c.read; },
     bad_argument("to", 5, 0, 0)},
};

TEST_CASE("relayouts: runs that are refused change no byte") {
    for (const RelayoutMisuse& misuse : kRuns) {
        CAPTURE(misuse.name);
        RelayoutCase c(misuse.from, misuse.to);
        misuse.spoil(c);
        const Handle<kvjit_plan> plan = c.plan();
        const auto before = c.snapshot();
        kvjit_error error = new_error();
        const kvjit_status status = c.run(plan.get(), &error);
        expect_error(status, error, misuse.want);
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
        expect_error(status, error, bad_argument(reads ? "to.cache" : "to.cachestarts", first, 0, -1, true));
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
            expect_error(status, error, bad_index("to.cachestarts", table[3], 0, 1, true));
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
    expect_error(status, error, bad_index("to.cachestarts", c.to.scales[3], 0, 1, true));
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

}  // namespace
}  // namespace kvjit::test

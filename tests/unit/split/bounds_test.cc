// Whatever the lengths say, a plan is small: docs at kvjit_plan_create. And what is cut coarser is still all there.
#include <doctest/doctest.h>

#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "call/arrays.h"
#include "cpu/split.h"
#include "generator/decode_tokens.h"

using namespace kvjit;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostTokens = std::int64_t{1} << 30;
/// Items of a stage beyond one for each sequence. An item has 104 bytes at most.
constexpr std::int64_t kMostItems = 200'000;

struct Lengths {
    std::vector<std::int64_t> seqstarts, kvstarts;
    std::int64_t num_kv_heads;
};

rt::Work split_of(const std::string& text, const Lengths& lengths, std::int64_t threads = 8) {
    test::IndexArrays arrays({test::parse_spec(text), {}, {}, lengths.num_kv_heads});
    arrays.batch.batch_size = std::ssize(lengths.seqstarts) - 1;
    arrays.batch.seqstarts = lengths.seqstarts.data();
    arrays.batch.kvstarts = lengths.kvstarts.data();
    return rt::split(rt::batch_view(arrays.spec, arrays.batch, true),
                     {gen::cpu_decode_tokens(arrays.spec, {}, {}), threads});
}

void check_items(const rt::Work& work, std::int64_t sequences) {
    for (const std::int64_t items : {std::ssize(work.store), std::ssize(work.load), std::ssize(work.decode),
                                     std::ssize(work.prefill), std::ssize(work.merge)}) {
        CHECK(items <= kMostItems + sequences);
    }
    CHECK(work.partial_floats * 4 <= 64 << 20);
}

const char* const kSpecs[] = {"op=MultiHeadAttention,is_causal=0",
                              "op=MultiHeadAttention,group=256,is_causal=1",
                              "op=MultiHeadAttention,head_dim=8,group=3,is_alibi=1",
                              "op=MultiHeadCacheAttention,group=4,layout=L2HTD",
                              "op=MultiHeadCacheAttention,head_dim=8,layout=TL2HD",
                              "op=KeyValueCache,head_dim=512",
                              "op=Merge,head_dim=512"};

const std::vector<Lengths> kWrong = {
    {{0, kMostTokens}, {0, 1}, 8},
    {{0, kMostTokens}, {0, kMostTokens}, 8},
    {{0, kMostTokens}, {0, kMostTokens}, 1 << 16},
    {{0, 1}, {0, kMostTokens}, 1 << 24},
    {{0, 1, kMostTokens}, {0, kMostTokens, 2 * kMostTokens}, 1 << 20},
    // Starts that nobody has checked.
    {{0, kMost / 2, 5, kMostTokens}, {0, kMost, kMost - 7, 3}, 8},
};

}  // namespace

TEST_CASE("wrong lengths lead to no more items than right ones") {
    for (const char* spec : kSpecs) {
        for (std::size_t i = 0; i < kWrong.size(); ++i) {
            for (const std::int64_t threads : {1, 64, 1024, 0x7fffffff}) {
                CAPTURE(std::string(spec));
                CAPTURE(i);
                CAPTURE(threads);
                check_items(split_of(spec, kWrong[i], threads), std::ssize(kWrong[i].seqstarts) - 1);
            }
        }
    }
}

TEST_CASE("many sequences of many heads have items for each sequence, not for each head") {
    Lengths many{{0}, {0}, 4096};
    for (int b = 0; b < 20'000; ++b) {
        many.seqstarts.push_back(many.seqstarts.back() + 1 + b % 2 * 20);
        many.kvstarts.push_back(many.kvstarts.back() + 600);
    }
    for (const char* spec : kSpecs) {
        CAPTURE(std::string(spec));
        check_items(split_of(spec, many, 64), 20'000);
    }
}

TEST_CASE("items that are cut coarser cover each row of each head once") {
    const Lengths lengths{{0, kMostTokens}, {0, 1}, 8};
    for (const char* spec : {"op=MultiHeadAttention,is_causal=0", "op=MultiHeadAttention,group=5,is_causal=0"}) {
        CAPTURE(std::string(spec));
        std::set<std::pair<std::int64_t, std::int64_t>> corners;
        std::int64_t covered = 0;
        for (const abi::AttendItem& item : split_of(spec, lengths).prefill) {
            CHECK(corners.emplace(item.row_begin, item.head_begin).second);
            CHECK(item.row_end <= kMostTokens);
            CHECK(item.head_end <= 8);
            covered += (item.row_end - item.row_begin) * (item.head_end - item.head_begin);
        }
        CHECK(covered == kMostTokens * 8);
    }
    std::int64_t next = 0;
    for (const abi::MergeItem& item : split_of("op=Merge", lengths).merge) {
        CHECK(item.token_begin == std::exchange(next, item.token_end));
    }
    CHECK(next == kMostTokens);
    next = 0;
    for (const abi::TokenItem& item : split_of("op=KeyValueCache", lengths).store) {
        CHECK(item.begin == std::exchange(next, item.end));
    }
    CHECK(next == kMostTokens);
}

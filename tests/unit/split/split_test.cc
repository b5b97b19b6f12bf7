// The work split: every query row of every head meets every chunk that it can see, once, at any concurrency.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "cpu/split.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "call/arrays.h"
#include "generator/decode_tokens.h"

using namespace kvjit;

namespace {

constexpr std::int64_t kWindow = 700;

/// New tokens and keys of each sequence.
struct Lengths {
    test::Numbers tokens, keys;
    void add(std::int64_t n, std::int64_t m) { tokens.push_back(n), keys.push_back(m); }
};

gen::KernelSpec spec_of(const std::string& text) {
    return *gen::parse_spec(text);
}

/// `lengths` with as many query heads as `kv_heads` and the spec's group make.
rt::Work split(const gen::KernelSpec& spec, const Lengths& lengths, std::int64_t kv_heads, std::int64_t threads,
               bool stores = true) {
    test::IndexArrays arrays({spec, lengths.tokens, lengths.keys, kv_heads});
    arrays.batch.window_left = kWindow;  // counts where the spec has a window
    return rt::split(rt::batch_view(spec, arrays.batch, stores), {gen::cpu_decode_tokens(spec, {}, {}), threads});
}

/// (sequence, row, kv head, chunk) -> how often an item covers it.
using Coverage = std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, int>;

void cover(const std::vector<abi::AttendItem>& items, Coverage& coverage) {
    for (const abi::AttendItem& item : items) {
        for (auto row = item.row_begin; row < item.row_end; ++row) {
            for (auto head = item.head_begin; head < item.head_end; ++head) {
                // An item without chunks still writes its rows (of zeros): count it as chunk -1.
                if (item.chunk_begin == item.chunk_end) ++coverage[{item.sequence, row, head, -1}];
                for (auto c = item.chunk_begin; c < item.chunk_end; ++c) ++coverage[{item.sequence, row, head, c}];
            }
        }
    }
}

void check_attend(const gen::KernelSpec& spec, const Lengths& lengths, std::int64_t kv_heads, std::int64_t threads) {
    const rt::Work work = split(spec, lengths, kv_heads, threads);
    Coverage coverage;
    cover(work.decode, coverage);
    cover(work.prefill, coverage);
    const bool cut = spec.is_alibi || spec.is_causal;
    for (std::int64_t b = 0; b < std::ssize(lengths.tokens); ++b) {
        const auto n = lengths.tokens[static_cast<std::size_t>(b)], m = lengths.keys[static_cast<std::size_t>(b)];
        for (std::int64_t row = 0; row < n; ++row) {
            const auto seen = cut ? std::clamp<std::int64_t>(m - n + row + 1, 0, m) : m;
            const auto chunks = (seen + abi::kChunk - 1) / abi::kChunk;
            const auto left = spec.has_window ? std::max<std::int64_t>(0, m - n + row - kWindow) : 0;
            for (std::int64_t head = 0; head < kv_heads; ++head) {
                for (std::int64_t c = left / abi::kChunk; c < chunks; ++c) CHECK(coverage[{b, row, head, c}] == 1);
            }
        }
    }
    for (const auto& [place, times] : coverage) CHECK(times == 1);
}

/// Partials of different tiles lie apart and inside the workspace; each is merged once.
void check_partials(const gen::KernelSpec& spec, const rt::Work& work) {
    const std::int64_t stride = spec.head_dim + abi::kPartialTail;
    std::vector<char> touched(static_cast<std::size_t>(work.partial_floats), 0);
    for (const abi::MergeItem& item : work.merge) {
        for (std::int64_t p = 0; p < item.parts; ++p) {
            for (auto t = item.token_begin; t < item.token_end; ++t) {
                for (auto h = item.head_begin; h < item.head_end; ++h) {
                    const auto at = item.acc + p * item.acc_part + (t - item.token_begin) * item.acc_token +
                                    (h - item.head_begin) * item.acc_head;
                    REQUIRE(at + stride <= work.partial_floats);
                    CHECK(touched[static_cast<std::size_t>(at)]++ == 0);
                }
            }
        }
    }
    CHECK(std::ranges::count(touched, 1) * stride == work.partial_floats);
}

}  // namespace

TEST_CASE("attend items cover every visible chunk once, for ragged batches at any concurrency") {
    const unsigned seed = 7;
    MESSAGE("seed ", seed);
    std::mt19937 random(seed);
    const char* specs[] = {"group=4,layout=L2HTD",
                           "group=1,layout=TL2HD",
                           "group=71,layout=L2HTD",
                           "group=3,layout=TL2HD,is_alibi=1",
                           "op=MultiHeadAttention,group=2,is_causal=0",
                           "group=4,layout=L2HTD,has_window=1",
                           "group=1,layout=TL2HD,has_window=1"};
    for (const char* text : specs) {
        for (int round = 0; round < 30; ++round) {
            Lengths lengths;
            const auto sequences = 1 + random() % 6;
            for (unsigned b = 0; b < sequences; ++b) {
                const std::int64_t n = random() % 3 == 0 ? random() % 400 : random() % 3;
                lengths.add(n, n + (random() % 2 == 0 ? random() % 5000 : 0));
            }
            const std::int64_t kv_heads = 1 + random() % 4, threads = 1 + random() % 9;
            check_attend(spec_of(text), lengths, kv_heads, threads);
            check_partials(spec_of(text), split(spec_of(text), lengths, kv_heads, threads));
        }
    }
}

TEST_CASE("the same of many short sequences, whose items have several heads") {
    const unsigned seed = 8;
    MESSAGE("seed ", seed);
    std::mt19937 random(seed);
    std::int64_t several = 0, cut = 0;
    for (const char* text :
         {"group=4,layout=L2HTD", "group=48,layout=L2HTD", "op=MultiHeadAttention,group=2,is_causal=0",
          "group=4,layout=L2HTD,has_window=1", "group=1,layout=TL2HD"}) {
        for (int round = 0; round < 20; ++round) {
            Lengths lengths;
            const auto sequences = 20 + random() % 100;
            for (unsigned b = 0; b < sequences; ++b) {
                const std::int64_t n = random() % 20 == 0 ? random() % 40 : random() % 3;
                lengths.add(n, n + random() % (random() % 4 == 0 ? 3000 : 600));
            }
            const std::int64_t kv_heads = 2 + random() % 10, threads = 1 + random() % 4;
            check_attend(spec_of(text), lengths, kv_heads, threads);
            const rt::Work work = split(spec_of(text), lengths, kv_heads, threads);
            check_partials(spec_of(text), work);
            for (const abi::AttendItem& item : work.decode) {
                several += item.head_end - item.head_begin > 1;
                cut += item.head_end - item.head_begin > 1 && item.partial >= 0;
            }
            for (const abi::AttendItem& item : work.prefill) CHECK(item.head_end - item.head_begin == 1);
        }
    }
    CHECK(several > 1000);
    CHECK(cut > 0);
}

TEST_CASE("a window's decode has the items of its window, however many keys lie before it") {
    const auto chunks_of = [](std::int64_t keys) {
        Lengths one;
        one.add(1, keys);
        const rt::Work work = split(spec_of("layout=L2HTD,has_window=1"), one, 1, 1);
        std::int64_t chunks = 0;
        for (const abi::AttendItem& item : work.decode) chunks += item.chunk_end - item.chunk_begin;
        return chunks;
    };
    CHECK(chunks_of(1 << 20) == 2);          // 701 keys, the last one the last of a chunk
    CHECK(chunks_of((1 << 20) + 100) == 3);  // 100 of them in a third
    CHECK(chunks_of(300) == 1);
}

TEST_CASE("a long sequence alone is split over its keys, many short ones are not") {
    Lengths one;
    one.add(1, 32768);
    const rt::Work cut = split(spec_of("layout=L2HTD"), one, 2, 8);
    CHECK(cut.decode.size() >= 8);
    CHECK(cut.partial_floats > 0);
    Lengths many;
    for (int b = 0; b < 64; ++b) many.add(1, 512);
    const rt::Work whole = split(spec_of("layout=L2HTD"), many, 8, 8);
    CHECK(whole.partial_floats == 0);
    CHECK(whole.merge.empty());
}

TEST_CASE("the longest sequences go first, all heads of one before the next") {
    Lengths lengths;
    lengths.add(1, 512);
    lengths.add(1, 2048);
    lengths.add(1, 1024);
    const rt::Work work = split(spec_of("layout=L2HTD"), lengths, 3, 1);
    std::vector<std::pair<std::int64_t, std::int64_t>> order;
    for (const abi::AttendItem& item : work.decode) order.emplace_back(item.sequence, item.head_begin);
    CHECK(order == decltype(order){{1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}, {0, 0}, {0, 1}, {0, 2}});
}

TEST_CASE("an item takes several heads of a short sequence, where enough items remain") {
    using Heads = std::set<std::int64_t>;
    const auto heads_of = [](const std::string& layout, const Lengths& lengths, std::int64_t threads) {
        Heads heads;
        for (const abi::AttendItem& item : split(spec_of("layout=" + layout), lengths, 8, threads).decode)
            heads.insert(item.head_end - item.head_begin);
        return heads;
    };
    const auto heads_of_items = [&](std::int64_t batch_size, std::int64_t keys, std::int64_t threads) {
        Lengths lengths;
        for (std::int64_t b = 0; b < batch_size; ++b) lengths.add(1, keys);
        return heads_of("L2HTD", lengths, threads);
    };
    CHECK(heads_of_items(64, 512, 2) == Heads{8});
    CHECK(heads_of_items(64, 1024, 2) == Heads{4});
    CHECK(heads_of_items(64, 4096, 2) == Heads{1});
    CHECK(heads_of_items(64, 512, 16) == Heads{2});
    CHECK(heads_of_items(64, 512, 64) == Heads{1});
    CHECK(heads_of_items(2, 512, 2) == Heads{1});
    Lengths one_of_many;
    for (int b = 0; b < 127; ++b) one_of_many.add(0, 512);
    one_of_many.add(1, 512);
    CHECK(heads_of("L2HTD", one_of_many, 8) == Heads{1});
    // Where heads are neighbours: all of them, if their chunks are enough items.
    Lengths neighbours;
    for (int b = 0; b < 4; ++b) neighbours.add(1, 1024);
    CHECK(heads_of("TL2HD", neighbours, 2) == Heads{8});
    CHECK(heads_of("TL2HD", neighbours, 4) == Heads{4});
    neighbours.add(100, 1 << 16);
    CHECK(heads_of("TL2HD", neighbours, 4) == Heads{4});
}

TEST_CASE("a decode tile costs what its rows do, once they outweigh its keys") {
    Lengths lengths;
    lengths.add(2, 65536);  // 8 rows
    lengths.add(1, 65536);
    lengths.add(6, 65536);  // 24 rows
    const rt::Work work = split(spec_of("group=4,layout=L2HTD"), lengths, 1, 8);
    std::array<std::int64_t, 3> items{};
    for (const abi::AttendItem& item : work.decode) ++items[static_cast<std::size_t>(item.sequence)];
    CHECK(items[0] == items[1]);
    CHECK(items[2] >= 2 * items[1]);
    CHECK(work.decode.front().sequence == 2);
}

TEST_CASE("partials of long prefills stay within a budget, and what is left whole is still covered once") {
    Lengths lengths;
    lengths.add(128, 1 << 18);
    const gen::KernelSpec grouped = spec_of("op=MultiHeadAttention,group=4");
    const rt::Work work = split(grouped, lengths, 8, 64);
    CHECK(work.partial_floats * 4 <= 64 << 20);
    check_attend(grouped, lengths, 8, 64);
    check_partials(grouped, work);
}

TEST_CASE("rows times group decides the path, not the place in the batch") {
    Lengths lengths;
    lengths.add(1, 100);
    lengths.add(2, 100);
    lengths.add(100, 100);
    const rt::Work work = split(spec_of("group=8"), lengths, 1, 2);
    for (const abi::AttendItem& item : work.decode) CHECK(item.sequence < 2);
    for (const abi::AttendItem& item : work.prefill) CHECK(item.sequence == 2);
}

TEST_CASE("store and load items cover every token once; empty sequences have none") {
    Lengths lengths;
    lengths.add(0, 0);
    lengths.add(3000, 3100);
    lengths.add(1, 7);
    const rt::Work work = split(spec_of("op=KeyValueCache"), lengths, 8, 2);
    std::map<std::pair<std::int64_t, std::int64_t>, int> stored, loaded;
    for (const auto& item : work.store) {
        for (auto t = item.begin; t < item.end; ++t) ++stored[{item.sequence, t}];
    }
    for (const auto& item : work.load) {
        for (auto t = item.begin; t < item.end; ++t) ++loaded[{item.sequence, t}];
    }
    CHECK(split(spec_of("op=KeyValueCache"), lengths, 8, 2, false).store.empty());
    CHECK(stored.size() == 3001);
    CHECK(loaded.size() == 3107);
    CHECK(std::ranges::all_of(stored, [](const auto& entry) { return entry.second == 1; }));
    CHECK(std::ranges::all_of(loaded, [](const auto& entry) { return entry.second == 1; }));
}

// Decode over quantised caches, whose products may be of integers: numbers that integers don't have.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/options.h"
#include "conformance/ragged.h"
#include "conformance/run_call.h"
#include "kvjit/kvjit.hpp"

namespace kvjit::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

/// Rows of which products of bytes on CPUs and CUDA's decode each have kinds.
const std::vector<std::string> kEverywhere = {
    "op=MultiHeadCacheAttention,head_dim=128,group=4,layout=L2HTD,quant_bit=8,quant_group=32,",
    "op=MultiHeadCacheAttention,head_dim=64,group=8,layout=TL2HD,quant_bit=4,quant_group=32,",
    "op=MultiHeadCacheAttention,head_dim=128,group=5,layout=TL2HD,quant_bit=4,quant_group=128,",
    "op=MultiHeadCacheAttention,head_dim=128,group=4,layout=L2HTD,quant_bit=8,quant_group=8,",
    "op=MultiHeadCacheAttention,head_dim=64,group=1,layout=L2HTD,quant_bit=4,quant_group=8,",
    "op=MultiHeadCacheAttention,head_dim=8,group=3,layout=L2HTD,quant_bit=4,quant_group=4,"};
/// Further kinds that CPUs have: other numbers of registers a row, and rows whose lanes are summed before they are
/// scaled.
const std::vector<std::string> kOnCpus = {
    "op=MultiHeadCacheAttention,head_dim=96,group=2,layout=L2HTD,quant_bit=8,quant_group=32,",
    "op=MultiHeadCacheAttention,head_dim=128,group=8,layout=TL2HD,quant_bit=4,quant_group=16,",
    "op=MultiHeadCacheAttention,head_dim=192,group=4,layout=L2HTD,quant_bit=4,quant_group=16,",
    "op=MultiHeadCacheAttention,head_dim=256,group=4,layout=L2HTD,quant_bit=4,quant_group=256,",
    "op=MultiHeadCacheAttention,head_dim=192,group=2,layout=TL2HD,quant_bit=4,quant_group=192,",
    "op=MultiHeadCacheAttention,head_dim=64,group=2,layout=TL2HD,quant_bit=8,quant_group=4,",
    "op=MultiHeadCacheAttention,head_dim=32,group=4,layout=L2HTD,quant_bit=8,quant_group=8,",
    "op=MultiHeadCacheAttention,head_dim=512,group=1,layout=L2HTD,quant_bit=8,quant_group=512,",
    "op=MultiHeadCacheAttention,head_dim=512,group=4,layout=L2HTD,quant_bit=8,quant_group=512,"};

std::vector<std::string> specs() {
    std::vector<std::string> all = kEverywhere;
    if (!options().on_cuda()) all.insert(all.end(), kOnCpus.begin(), kOnCpus.end());
    return all;
}

/// Sequences of one new token each, with a chunk of keys or less before it.
Case decode_of(const std::string& spec, PastTokens past = PastTokens::kRagged) {
    Case which = ragged(spec);
    which.new_tokens = NewTokens::kOne;
    which.past_tokens = past;
    return which;
}

/// Keys (0) or values (1) of a call's cache.
class Part {
public:
    Part(const Call& call, int key_or_value)
        : problem_(call.problem), codes_(memory_of(call.cache)), scales_(memory_of(call.scale)), part_(key_or_value) {}

    /// Position t of sequence b, kv head 1: all scales, or one.
    void set_scales(std::int64_t b, std::int64_t t, double scale) const {
        for (std::int64_t g = 0; g < groups(); ++g) set_scale(b, t, g, scale);
    }
    void set_scale(std::int64_t b, std::int64_t t, std::int64_t group, double scale) const {
        const CacheRow row = cache_row(problem_, scales_, part_, slot_of(problem_, b, t), 1);
        write_element(row.at(group), row.dtype, 0, scale);
    }
    void set_bytes(std::int64_t b, std::int64_t t, std::int8_t byte) const {
        const CacheRow row = cache_row(problem_, codes_, part_, slot_of(problem_, b, t), 1);
        const std::int64_t bytes = problem_.spec.head_dim * problem_.spec.quant_bit / 8;
        for (std::int64_t i = 0; i < bytes; ++i) *row.at(i) = static_cast<std::byte>(byte);
    }

private:
    std::int64_t groups() const { return problem_.spec.head_dim / problem_.spec.quant_group; }

    const Problem& problem_;
    CacheMemory codes_, scales_;
    int part_;
};

/// The longest sequence of the call.
std::int64_t longest(const Problem& problem) {
    std::int64_t longest = 0;
    for (std::int64_t b = 0; b < problem.batch_size(); ++b) {
        if (problem.kv_tokens(b) > problem.kv_tokens(longest)) longest = b;
    }
    return longest;
}

template <class Change>
void judge_changed(const Case& which, Change change) {
    Call call = make_call(which, 171, 172);
    change(call, longest(call.problem));
    check_against_oracle(call);
}

TEST_CASE("quantised decode: queries that have no digits") {
    for (const std::string& spec : specs()) {
        // At an element among the first, or at the last one.
        for (const auto& [number, is_last] : {std::pair{kNan, false},
                                              {kNan, true},
                                              {kInfinity, false},
                                              {-kInfinity, true},
                                              {0.0, false},
                                              {1e-30, true},
                                              {60000.0, false}}) {
            CAPTURE(number);
            CAPTURE(is_last);
            const std::string type = number == 1e-30 ? "t1=f32" : "t1=f16";
            judge_changed(decode_of(spec + type), [&](Call& call, std::int64_t b) {
                const Strided& query = call.query.strided();
                const std::int64_t element = is_last ? call.problem.spec.head_dim - 1 : 7;
                call.query.set(query.index(call.problem.seqstarts[static_cast<std::size_t>(b)], 0, element), number);
            });
        }
        judge_changed(decode_of(spec + "t1=f32"),
                      [](Call& call, std::int64_t) { call.query.fill([] { return 0.0; }); });
        // So small that a common unit of fixed point has no power of two for them.
        judge_changed(decode_of(spec + "t1=f32,t3=f32"), [](Call& call, std::int64_t) {
            call.query.fill([i = 0]() mutable { return std::ldexp(1 + i++ % 7, -111); });
        });
    }
}

TEST_CASE("quantised decode: scales of keys and values that kvjit doesn't store") {
    for (const std::string& spec : specs()) {
        for (const double scale : {kNan, kInfinity, -0.02, 0.0, 1e-7, 100.0}) {
            for (const int part : {0, 1}) {
                for (const std::string type : {"t1=f32,t3=f32", "t1=f16", "t1=bf16"}) {
                    CAPTURE(scale);
                    CAPTURE(part);
                    // With bfloat16 pairs an infinity may stand for a NaN; a group's own scale is what is to be seen.
                    if (type == "t1=bf16" && scale != -0.02) continue;
                    judge_changed(decode_of(spec + type), [&](Call& call, std::int64_t b) {
                        Part(call, part).set_scale(b, call.problem.kv_tokens(b) / 2, 0, scale);
                    });
                }
            }
        }
    }
}

// The largest probabilities times such scales are as large as a number of 16 bits may be, or as scores' rounding lets
// it.
TEST_CASE("quantised decode: values' scales a little less than a power of two, under small and large scores") {
    for (const std::string& spec : specs()) {
        for (const double scale : {1.9998, 3.9996, 255.99, -255.99}) {
            for (const double key_scale : {0.01, 800.0}) {
                for (const std::string type : {"t1=f16", "t1=f16,t3=f32", "t1=bf16"}) {
                    CAPTURE(scale);
                    CAPTURE(key_scale);
                    judge_changed(decode_of(spec + type), [&](Call& call, std::int64_t b) {
                        const Part keys(call, 0), values(call, 1);
                        for (std::int64_t t = 0; t + 1 < call.problem.kv_tokens(b); ++t) {
                            keys.set_scales(b, t, key_scale);
                            values.set_scales(b, t, scale);
                        }
                    });
                }
            }
        }
    }
}

// Of each key, or of each group of elements: what is largest of them bounds products for all.
TEST_CASE("quantised decode: values' scales of which every other one is large") {
    for (const std::string& spec : specs()) {
        for (const int every : {0, 1}) {  // other key; other group of each key
            for (const std::string type : {"t1=f16", "t1=bf16"}) {
                CAPTURE(every);
                judge_changed(decode_of(spec + type), [&](Call& call, std::int64_t b) {
                    const std::int64_t groups = call.problem.spec.head_dim / call.problem.spec.quant_group;
                    const Part values(call, 1);
                    for (std::int64_t t = 0; t + 1 < call.problem.kv_tokens(b); ++t) {
                        for (std::int64_t g = 0; g < groups; ++g) {
                            if ((every == 0 ? t : g) % 2 != 0) values.set_scale(b, t, g, 60.0);
                        }
                    }
                });
            }
        }
    }
}

TEST_CASE("quantised decode: scales far below those that kvjit stores") {
    for (const std::string& spec : specs()) {
        for (const double size : {1e-12, 1e-20, 1e-26}) {
            CAPTURE(size);
            Case which = decode_of(spec + "t1=f32,t3=f32");
            which.stores = Stores::kNotThisRun;
            judge_changed(which, [&](Call& call, std::int64_t) {
                for (Placed& scales : call.scale) scales.fill([&, i = 0]() mutable { return size * (1 + i++ % 5); });
            });
        }
    }
}

// Keys are taken by blocks, of which the last may be empty for one token and not for the next.
TEST_CASE("quantised decode: a token whose keys end where a block does") {
    for (const std::string& spec : specs()) {
        for (const std::string type : {"t1=f32", "t1=f16"}) {
            CAPTURE(spec);
            CAPTURE(type);
            Case which = decode_of(spec + type, PastTokens::kRagged);
            which.new_tokens = NewTokens::kFew;
            which.batch_size = 1;
            const auto ends_at_block = [&](std::uint64_t seed) {
                const Problem problem = make_call(which, seed, 182).problem;
                bool found = false;
                for (std::int64_t after = 1; after < problem.new_tokens(0); ++after) {
                    const std::int64_t keys = problem.kv_tokens(0) - after;
                    found |= keys % 128 == 0 && keys % 512 != 0;
                }
                return found;
            };
            check_against_oracle(which, find_seed(191, ends_at_block), 182);
        }
    }
}

TEST_CASE("quantised decode: a later token's value changes no bit of earlier ones") {
    const auto bits_before = [](const std::string& spec, double number) {
        Case which = decode_of(spec);
        which.new_tokens = NewTokens::kTwoOrThree;
        which.batch_size = 1;
        Call call = make_call(which, 201, 202);
        const std::int64_t last = call.problem.new_tokens(0) - 1;
        REQUIRE(last > 0);
        call.current_value.set(call.current_value.strided().index(last, 1, 5), number);
        check_against_oracle(call);
        std::vector<std::byte> bits = call.attn_output.packed();
        bits.resize(bits.size() / static_cast<std::size_t>(last + 1) * static_cast<std::size_t>(last));
        return bits;
    };
    for (const std::string& spec : specs()) {
        for (const std::string type : {"t1=f32", "t1=f16", "t1=bf16"}) {
            CAPTURE(spec);
            CAPTURE(type);
            // On GPUs a NaN may reach the other rows of its tile, and in prefill, which has 2 tokens of 5 heads. On
            // CPUs decode over quantised caches skips it, and has all of the other tokens, with AMX, too.
            const bool shares_tiles = options().on_cuda() || ragged(spec).spec.group > 4;
            const double other = shares_tiles ? 3.0 : kNan;
            CHECK(bits_before(spec + type, other) == bits_before(spec + type, 0.5));
        }
    }
}

TEST_CASE("quantised decode: no scale but 0, and the code -128") {
    for (const std::string& spec : specs()) {
        for (const int part : {0, 1}) {
            CAPTURE(part);
            judge_changed(decode_of(spec + "t1=f32"), [&](Call& call, std::int64_t b) {
                const Part changed(call, part);
                for (std::int64_t t = 0; t + 1 < call.problem.kv_tokens(b); ++t) changed.set_scales(b, t, 0);
            });
            judge_changed(decode_of(spec + "t1=f16"), [&](Call& call, std::int64_t b) {
                const std::int8_t least = call.problem.spec.quant_bit == 8 ? -128 : -120;  // of each nibble, -8
                const Part changed(call, part);
                for (std::int64_t t = 0; t + 1 < call.problem.kv_tokens(b); ++t) changed.set_bytes(b, t, least);
            });
        }
    }
}

TEST_CASE("quantised decode: what no row sees changes no bit") {
    const auto bits = [](const std::string& spec, double scale, double seen_scale) {
        Case which = decode_of(spec, PastTokens::kChunkEdge);
        which.window_left = 300;
        Call call = make_call(which, 181, 182);
        const std::int64_t b = longest(call.problem), hidden = call.problem.kv_tokens(b) - 40;
        const std::int64_t column = call.problem.kvstarts[static_cast<std::size_t>(b)] + hidden;
        const Strided& mask = call.mask.strided();
        for (std::int64_t i = 0; i < mask.shape[0]; ++i) call.mask.set(mask.index(i, column), -kInfinity);
        for (const int part : {0, 1}) {
            Part(call, part).set_scales(b, hidden, scale);
            Part(call, part).set_scales(b, call.problem.kv_tokens(b) - 310, scale);  // before the window
        }
        Part(call, 1).set_scales(b, hidden + 3, seen_scale);
        check_against_oracle(call);
        return call.attn_output.packed();
    };
    for (const std::string& spec : specs()) {
        for (const std::string type : {"t1=f32", "t1=f16"}) {
            CAPTURE(spec);
            CAPTURE(type);
            const std::string rules = spec + type + ",attn_mask=2,has_window=1";
            for (const double seen_scale : {0.02, -0.02}) {
                const auto expected = bits(rules, 0.01, seen_scale);
                for (const double scale : {kNan, -1.0, kInfinity, 60000.0}) {
                    if (seen_scale > 0 || std::isnan(scale)) CHECK(bits(rules, scale, seen_scale) == expected);
                }
            }
        }
    }
}

TEST_CASE("quantised decode: a scale of a key that a mask hides from one head changes no bit of that head") {
    const auto bits_of_head = [](const std::string& spec, double scale) {
        Call call = make_call(decode_of(spec + "t1=f32,attn_mask=3", PastTokens::kChunkEdge), 191, 192);
        const std::int64_t b = longest(call.problem), hidden = call.problem.kv_tokens(b) - 40;
        const std::int64_t column = call.problem.kvstarts[static_cast<std::size_t>(b)] + hidden;
        const std::int64_t head = call.problem.spec.group;  // the first of kv head 1
        const Strided& mask = call.mask.strided();
        for (std::int64_t i = 0; i < mask.shape[1]; ++i) call.mask.set(mask.index(head, i, column), -kInfinity);
        Part(call, 1).set_scales(b, hidden, scale);
        check_against_oracle(call);
        const std::vector<std::byte> all = call.attn_output.packed();
        const Strided& output = call.attn_output.strided();
        const std::int64_t row = all.size() / (output.shape[0] * output.shape[1]);
        const std::int64_t token = call.problem.seqstarts[static_cast<std::size_t>(b)];
        const auto first = all.begin() + (token * output.shape[1] + head) * row;
        return std::vector<std::byte>(first, first + row);
    };
    for (const std::string spec :
         {"op=MultiHeadCacheAttention,head_dim=128,group=4,layout=L2HTD,quant_bit=8,quant_group=32,",
          "op=MultiHeadCacheAttention,head_dim=128,group=5,layout=TL2HD,quant_bit=4,quant_group=128,",
          "op=MultiHeadCacheAttention,head_dim=96,group=2,layout=L2HTD,quant_bit=8,quant_group=32,"}) {
        CAPTURE(spec);
        const auto expected = bits_of_head(spec, 0.01);
        for (const double scale : {-0.02, -1.0, 0.0}) CHECK(bits_of_head(spec, scale) == expected);
    }
}

TEST_CASE("quantised decode: a key that an earlier token alone sees changes no bit of later ones") {
    if (options().on_cuda()) return;  // where tokens share tiles
    Case which = ragged(kEverywhere.front() + "t1=f16,has_window=1");
    which.new_tokens = NewTokens::kFew;
    which.batch_size = 1;
    which.window_left = 5;
    which.window_right = 0;
    which.past_tokens = PastTokens::kVectorEdge;
    const auto first_seen = [&](const Problem& problem) { return problem.kv_tokens(0) - problem.new_tokens(0) - 5; };
    // In the middle of a vector of keys.
    const std::uint64_t seed = find_seed(201, [&](std::uint64_t each) {
        const Problem problem = make_call(which, each, 202).problem;
        return problem.new_tokens(0) > 2 && first_seen(problem) % 16 == 3;
    });
    const auto later_bits = [&](double scale) {
        Call call = make_call(which, seed, 202);
        Part(call, 1).set_scales(0, first_seen(call.problem), scale);
        check_against_oracle(call);
        const std::vector<std::byte> all = call.attn_output.packed();
        const std::size_t row = all.size() / static_cast<std::size_t>(call.problem.new_tokens(0));
        return std::vector<std::byte>(all.begin() + static_cast<std::ptrdiff_t>(row), all.end());
    };
    CHECK(later_bits(kNan) == later_bits(0.01));
}

TEST_CASE("quantised decode: sums of bytes by tiles have the bits of those by vectors") {
    if (options().on_cuda()) return;  // both are CPUs'
    const std::string lines = "op=MultiHeadCacheAttention,layout=L2HTD,";
    const std::string rows = "op=MultiHeadCacheAttention,layout=TL2HD,";
    std::set<std::string> lacking;
    for (const std::string& spec : {lines + "head_dim=128,group=4,quant_bit=8,quant_group=32",
                                    lines + "head_dim=96,group=3,quant_bit=8,quant_group=96",
                                    lines + "head_dim=512,group=8,quant_bit=8,quant_group=64,t1=f32",
                                    lines + "head_dim=32,group=11,quant_bit=8,quant_group=32,attn_mask=3",
                                    lines + "head_dim=64,group=4,quant_bit=4,quant_group=32",
                                    rows + "head_dim=192,group=7,quant_bit=4,quant_group=64,t1=bf16",
                                    rows + "head_dim=128,group=4,quant_bit=4,quant_group=128,has_window=1"}) {
        CAPTURE(spec);
        for (const NewTokens tokens : {NewTokens::kOne, NewTokens::kTwoOrThree}) {
            // Of more rows some are prefilled.
            if (tokens == NewTokens::kTwoOrThree && !spec.contains("group=4,")) continue;
            Case which = ragged(spec);
            which.new_tokens = tokens;
            which.window_left = spec.contains("has_window") ? 37 : -1;
            const std::vector<std::byte> tiles =
                output_on("x86-64-v3+amx-emulated", KVJIT_PROGRAM_DECODE, "amx-int8", which);
            if (tiles.empty()) {
                MESSAGE("SKIP: this machine lacks AVX2, for which tiles are emulated");
                return;
            }
            for (const auto& [name, variant] : {std::pair{"x86-64-v4-vnni", "vnni"},
                                                {"x86-64-v4-vnni+amx-emulated", "amx-int8"},
                                                {"x86-64-v4-amx", "amx-int8"}}) {
                CAPTURE(std::string(name));
                const std::vector<std::byte> others = output_on(name, KVJIT_PROGRAM_DECODE, variant, which);
                if (others.empty()) lacking.emplace(name);
                if (!others.empty()) CHECK(others == tiles);
            }
        }
    }
    for (const std::string& name : lacking) MESSAGE("SKIP in part: this machine lacks " << name);
}

}  // namespace
}  // namespace kvjit::test

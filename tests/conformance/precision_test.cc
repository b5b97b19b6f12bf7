// What float16 products could lose although each call of ordinary size is right: over long rows, next to large scores,
// with small values.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/judge.h"
#include "conformance/options.h"
#include "conformance/ragged.h"
#include "conformance/run_call.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kDim = 16;
constexpr double kLseTolerance = 1e-5;

/// A score and a value that many keys have: element 0 of the key is the score, all elements of the value are alike.
struct Keys {
    std::int64_t count;
    double score, value;
};

struct Expected {
    double output, lse;
};

Expected expect(const std::vector<Keys>& keys, double mask, double scale) {
    double largest = -HUGE_VAL, sum = 0, weighted = 0;
    for (const Keys& each : keys) largest = std::fmax(largest, each.score * scale);
    for (const Keys& each : keys) {
        const double weight = static_cast<double>(each.count) * std::exp(each.score * scale - largest);
        sum += weight;
        weighted += weight * each.value;
    }
    return {weighted / sum, largest + mask + std::log(sum)};
}

/// One sequence of MultiHeadAttention: a kv head with two query heads, (1, 0, ..., 0) for each of `tokens` new tokens,
/// which all see all keys. Scores and values are float16's.
class Row {
public:
    Row(std::int64_t tokens, const std::vector<Keys>& keys, double mask, double scale)
        : tokens_(tokens), masked_(mask != 0), scale_(scale) {
        std::int64_t count = 0;
        for (const Keys& each : keys) count += each.count;
        key_ = half_tensor({count, 1, kDim});
        value_ = half_tensor({count, 1, kDim});
        std::int64_t at = 0;
        for (const Keys& each : keys) {
            for (const std::int64_t end = at + each.count; at < end; ++at) set(at, each);
        }
        query_ = half_tensor({tokens, 2, kDim});
        query_.fill([&, i = std::int64_t{0}]() mutable { return i++ % kDim == 0 ? 1.0 : 0.0; });
        output_ = half_tensor(query_.strided().shape);
        mask_ = {KVJIT_F16, {tokens, count}, {count, 1}, Guard::kAfter};
        mask_.fill([&] { return mask; });
        lse_ = Placed(KVJIT_F32, {tokens, 2}, {2, 1}, Guard::kAfter);
        seqstarts_ = Placed::integers({0, tokens}, KVJIT_I64, Guard::kAfter);
        kvstarts_ = Placed::integers({0, count}, KVJIT_I64, Guard::kAfter);
    }

    /// split_keys 0: unsplit, so that a row's sums are those of all of its keys.
    std::string run(std::int64_t split_keys) {
        const std::int64_t count = key_.strided().shape[0];
        if (split_keys == 0) split_keys = (count + 63) / 64 * 64;
        Bound bound = {};
        bound.spec = spec_of(std::string("op=MultiHeadAttention,head_dim=16,group=2,t1=f16,is_causal=0,attn_mask=") +
                             (masked_ ? "2" : "0"));
        kvjit_batch_init(&bound.batch);
        bound.batch.batch_size = 1;
        bound.batch.num_heads = 2;
        bound.batch.num_kv_heads = 1;
        bound.batch.softmax_scale = static_cast<float>(scale_);
        bound.batch.seqstarts = seqstarts_.data<std::int64_t>();
        bound.batch.kvstarts = kvstarts_.data<std::int64_t>();
        kvjit_tensors_init(&bound.tensors);
        bound.tensors.query = query_.view();
        bound.tensors.key = key_.view();
        bound.tensors.value = value_.view();
        if (masked_) bound.tensors.attn_mask = mask_.view();
        bound.tensors.attn_output = output_.view();
        bound.tensors.lse = lse_.view();
        return run_bound(bound, {.split_keys = split_keys});
    }

    std::string judge(const Expected& expected) const {
        const auto rows = static_cast<std::size_t>(tokens_ * 2);
        const auto output = compare_close("attn_output", numbers_of(output_),
                                          std::vector<double>(rows * kDim, expected.output), tolerance_of(KVJIT_F16));
        const auto lse =
            compare_close("lse", numbers_of(lse_), std::vector<double>(rows, expected.lse), kLseTolerance, 1);
        return output + lse;
    }

private:
    static Placed half_tensor(const std::vector<std::int64_t>& shape) {
        return {KVJIT_F16, shape, {shape[1] * kDim, kDim, 1}, Guard::kAfter};
    }

    void set(std::int64_t at, const Keys& keys) {
        for (std::int64_t d = 0; d < kDim; ++d) {
            key_.set(key_.strided().index(at, 0, d), d == 0 ? keys.score : 0);
            value_.set(value_.strided().index(at, 0, d), keys.value);
        }
    }

    std::int64_t tokens_;
    bool masked_;
    double scale_;
    Placed mask_, query_, key_, value_, output_, lse_, seqstarts_, kvstarts_;
};

/// `mask`: added to each score, after it is multiplied by softmax_scale.
void check(std::int64_t tokens, const std::vector<Keys>& keys, double mask = 0, std::int64_t split_keys = 0,
           double scale = 1) {
    CAPTURE(tokens);
    CAPTURE(keys[0].score);
    CAPTURE(keys[1].count);
    CAPTURE(mask);
    CAPTURE(scale);
    Row row(tokens, keys, mask, scale);
    REQUIRE(row.run(split_keys) == "");
    CHECK(row.judge(expect(keys, mask, scale)) == "");
}

TEST_CASE("keys whose scores are large only by their mask keep their weights when the largest score changes") {
    for (const double mask : {-65504.0, -1e4, 3e4}) {
        const std::vector<Keys> keys = {{512, 0.20703125, 1}, {512, 0.27734375, -1}};
        for (const std::int64_t tokens : {1, 40}) check(tokens, keys, mask);
        check(1, keys, mask, 128);
    }
}

TEST_CASE("a row's sums don't drift, however many keys follow its largest score") {
    for (const double top : {11.0, 30.0, 90.0}) check(1, {{64, top, 0}, {1 << 17, top - 10.5, 1}});
    check(40, {{64, 90, 0}, {1 << 12, 84, 1}});
}

TEST_CASE("scores may be as large as floats are, on CUDA up to 4e6") {
    std::vector<double> scales = {7, 70};
    if (!options().on_cuda()) scales.insert(scales.end(), {700, 3e4, 0.7e6, 1.1e9, 0.9e18, 1.3e30});
    for (const std::int64_t tokens : {1, 40}) {
        for (const double scale : scales) {
            const double rounded = static_cast<float>(scale);
            check(tokens, {{3, 40992, 2}, {90, 40000, -1}, {2, -65504, 5}}, 0, 0, rounded);
        }
    }
}

TEST_CASE("many small weights count beside a large one") {
    for (const std::int64_t tokens : {1, 40}) {
        for (const double distance : {10.0, 14.0, 16.0, 18.0}) check(tokens, {{1, 20, 0}, {8191, 20 - distance, 4096}});
    }
}

TEST_CASE("scores of half the soft cap keep their digits") {
    for (const std::string type : {"f32", "f16"}) {
        for (const NewTokens tokens : {NewTokens::kOne, NewTokens::kTileEdge}) {
            Case which = ragged("op=MultiHeadAttention,head_dim=8,group=1,is_causal=0,has_soft_cap=1,t1=" + type);
            which.new_tokens = tokens;
            which.past_tokens = PastTokens::kFew;
            which.soft_cap = 50;
            Call call = make_call(which, 155, 156);
            call.problem.softmax_scale = 1;
            call.query.fill([] { return 1.0; });
            call.key.fill([i = 0]() mutable { return 3.0 - 0.0625 * (i++ / 8 % 4); });  // scores are 24 to 22.5
            check_against_oracle(call);
        }
    }
}

TEST_CASE("products of 0 have the score 0 under the smallest soft caps") {
    for (const std::string cache :
         {"op=MultiHeadAttention,head_dim=8,group=1", "head_dim=64,group=4,quant_bit=8,quant_group=8",
          "head_dim=64,group=8,quant_bit=8,quant_group=32", "head_dim=64,group=4,quant_bit=4,quant_group=32"}) {
        for (const float soft_cap : {1e-42F, 1e-32F}) {
            for (const NewTokens tokens : {NewTokens::kOne, NewTokens::kTileEdge}) {
                CAPTURE(cache);
                CAPTURE(soft_cap);
                Case which = ragged(cache + ",t1=f16,is_causal=0,has_soft_cap=1");
                which.new_tokens = tokens;
                which.past_tokens = PastTokens::kFew;
                which.soft_cap = soft_cap;
                Call call = make_call(which, 161, 162);
                const std::int64_t head_dim = call.query.strided().shape[2];
                call.query.fill([=, i = std::int64_t{0}]() mutable { return static_cast<double>(i++ / head_dim % 2); });
                check_against_oracle(call);
            }
        }
    }
}

TEST_CASE("soft caps far above all scores cap none, however small the scale is") {
    for (const std::string type : {"f32", "f16"}) {
        for (const float soft_cap : {1e30F, 3e38F}) {
            for (const NewTokens tokens : {NewTokens::kOne, NewTokens::kTileEdge}) {
                CAPTURE(soft_cap);
                Case which = ragged("op=MultiHeadAttention,head_dim=8,group=1,is_causal=0,has_soft_cap=1,t1=" + type);
                which.new_tokens = tokens;
                which.past_tokens = PastTokens::kFew;
                which.soft_cap = soft_cap;
                Call call = make_call(which, 163, 164);
                call.problem.softmax_scale = 1e-6f;
                call.query.fill([] { return 1000.0; });
                call.key.fill([i = 0]() mutable { return 3072 - 64 * (i++ / 8 % 4); });  // scores are 24.6 to 23
                check_against_oracle(call);
            }
        }
    }
}

// Tensor cores and AMX multiply numbers of 16 bits by parts where one part doesn't hold them: every product of parts
// counts.
TEST_CASE("keys that differ have equal weights where their exact scores are equal") {
    for (const NewTokens tokens : {NewTokens::kOne, NewTokens::kTileEdge}) {
        Case which = ragged("op=MultiHeadAttention,head_dim=64,group=4,t1=f16,is_causal=0");
        which.new_tokens = tokens;
        which.past_tokens = PastTokens::kVectorEdge;
        Call call = make_call(which, 157, 158);
        constexpr double kNumber = 1 + 7.0 / 1024;
        call.query.fill([] { return kNumber; });
        // 64 kNumber^2 = kNumber (28 * 1.015625 + 36)
        const std::int64_t row = 64 * call.key.strided().shape[1];
        call.key.fill([&, i = std::int64_t{0}]() mutable {
            const std::int64_t key = i / row, d = i++ % 64;
            return key % 2 == 0 ? kNumber : d < 28 ? 1.015625 : 1.0;
        });
        call.value.fill([&, i = std::int64_t{0}]() mutable { return i++ / row % 2 == 0 ? 1.0 : -0.5; });
        call.problem.softmax_scale = 16;
        check_against_oracle(call);
    }
}

TEST_CASE("float32 scales keep their digits beside queries of 16 bits") {
    for (const std::string type : {"bf16", "f16"}) {
        for (const NewTokens tokens : {NewTokens::kOne, NewTokens::kTileEdge}) {
            Case which = ragged(
                "op=MultiHeadCacheAttention,head_dim=64,group=4,layout=L2HTD,quant_bit=8,"
                "quant_group=8,t3=f32,is_causal=0,t1=" +
                type);
            which.new_tokens = tokens;
            which.stores = Stores::kNever;  // the codes and scales are the caller's
            Call call = make_call(which, 159, 160);
            call.query.fill([] { return 1.0; });
            const CacheMemory codes = memory_of(call.cache), scales = memory_of(call.scale);
            for (std::int64_t b = 0; b < call.problem.batch_size(); ++b) {
                for (std::int64_t t = 0; t < call.problem.kv_tokens(b); ++t) {
                    const Slot slot = slot_of(call.problem, b, t);
                    for (std::int64_t head = 0; head < call.problem.num_kv_heads; ++head) {
                        for (const int part : {0, 1}) {
                            const CacheRow row = cache_row(call.problem, codes, part, slot, head);
                            for (std::int64_t d = 0; d < 64; ++d)
                                *row.at(d) = static_cast<std::byte>(part == 0 || t % 2 == 0 ? 64 : -64);
                            const CacheRow of = cache_row(call.problem, scales, part, slot, head);
                            const double scale = part == 0 && t % 2 == 0 ? 1.0038 / 64 : 1.0 / 64;
                            for (std::int64_t g = 0; g < 8; ++g) write_element(of.at(g), scales.dtype(), 0, scale);
                        }
                    }
                }
            }
            call.problem.softmax_scale = 1;
            check_against_oracle(call);
        }
    }
}

TEST_CASE("quantised values far below 1 keep their digits") {
    for (const std::string bits : {"8", "4"}) {
        for (const NewTokens tokens : {NewTokens::kFew, NewTokens::kTileEdge}) {
            for (const double size : {1e-3, 1e-4, 2e-5}) {
                CAPTURE(size);
                Case which = ragged("op=MultiHeadCacheAttention,head_dim=64,group=2,layout=TL2HD,quant_bit=" + bits);
                which.new_tokens = tokens;
                which.past_tokens = PastTokens::kNone;
                Call call = make_call(which, 151, 152);
                Rng rng(153);
                const auto rows = call.current_value.strided().shape[0];
                REQUIRE(rows > 0);
                call.current_value.fill([&] { return rng.normal() * size; });
                check_against_oracle(call);
            }
        }
    }
}

}  // namespace
}  // namespace kvjit::test

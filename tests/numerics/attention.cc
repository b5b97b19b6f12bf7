#include "attention.h"

#include <algorithm>
#include <cmath>

#include "call/oracle.h"
#include "support/rng.h"

namespace kvjit::test {
namespace {

constexpr double kSoftmaxScale = 0.08838834764831845;  // 1 / sqrt(kDim)
constexpr std::int64_t kOutlier = 5;                   // the channel

std::size_t count(std::int64_t number) {
    return static_cast<std::size_t>(number);
}

double rounded(double number, kvjit_dtype type) {
    std::byte memory[8];
    write_element(memory, type, 0, number);
    return read_element(memory, type, 0);
}

}  // namespace

Attention::Attention(const Kind& kind, std::uint64_t seed)
    : kind_(kind),
      query_(count(rows() * kDim) * bytes_of(kind.t1)),
      output_(query_.size()),
      queries_(count(rows() * kDim)),
      keys_(count(kKeys * kDim)),
      values_(keys_.size()),
      exact_(queries_.size()) {
    draw_cache(seed);
}

void Attention::draw_queries(const Difficulty& difficulty, std::uint64_t seed) {
    Rng rng(seed);
    for (double& number : queries_) number = rng.normal();
    for (std::int64_t row = 0; row < rows(); ++row) queries_[count(row * kDim + kOutlier)] *= difficulty.outlier;
    scale_queries(difficulty.score);
    compute();
}

/// So that the largest |score| is `largest_score`; then rounds them to T1.
void Attention::scale_queries(double largest_score) {
    double largest = 0;
    std::vector<double> scores(count(kKeys));
    for (std::int64_t row = 0; row < rows(); ++row) {
        score(row, scores);
        for (const double each : scores) largest = std::max(largest, std::fabs(each));
    }
    for (std::size_t i = 0; i < queries_.size(); ++i) {
        queries_[i] = rounded(queries_[i] * largest_score / largest, kind_.t1);
        write_element(query_.data(), kind_.t1, static_cast<std::int64_t>(i), queries_[i]);
    }
}

/// Keys and values are normal numbers, rounded to the cache's type, or quantised with the group's largest as 127 or 7.
void Attention::draw_cache(std::uint64_t seed) {
    Rng rng(seed);
    const std::int64_t elements = 2 * kKeys * kDim;
    std::vector<double> numbers(count(elements));  // (key, key or value, D)
    for (double& number : numbers) number = rng.normal();
    if (kind_.quant_bit == 0) {
        cache_.resize(count(elements) * bytes_of(kind_.t2));
        for (std::int64_t i = 0; i < elements; ++i) {
            numbers[count(i)] = rounded(numbers[count(i)], kind_.t2);
            write_element(cache_.data(), kind_.t2, i, numbers[count(i)]);
        }
        return keep_numbers(numbers);
    }
    cache_.resize(count(elements * kind_.quant_bit / 8));
    scale_.resize(count(elements / kind_.quant_group) * 2);
    const double most = kind_.quant_bit == 8 ? 127 : 7;
    for (std::int64_t group = 0; group < elements / kind_.quant_group; ++group) {
        double* first = &numbers[count(group * kind_.quant_group)];
        double largest = 0;
        for (int i = 0; i < kind_.quant_group; ++i) largest = std::max(largest, std::fabs(first[i]));
        const double scale = rounded(largest / most, KVJIT_F16);
        write_element(scale_.data(), KVJIT_F16, group, scale);
        for (int i = 0; i < kind_.quant_group; ++i) {
            const double code = std::clamp(std::nearbyint(first[i] / scale), -most, most);
            const std::int64_t at = group * kind_.quant_group + i;
            first[i] = code * scale;
            const auto bits = static_cast<std::uint8_t>(static_cast<int>(code));
            if (kind_.quant_bit == 8)
                cache_[count(at)] = std::byte{bits};
            else
                cache_[count(at / 2)] |= std::byte{static_cast<std::uint8_t>((bits & 15) << 4 * (at % 2))};
        }
    }
    keep_numbers(numbers);
}

/// Where loops below find neighbours.
void Attention::keep_numbers(const std::vector<double>& numbers) {
    for (std::int64_t k = 0; k < kKeys; ++k) {
        for (std::int64_t d = 0; d < kDim; ++d) {
            keys_[count(d * kKeys + k)] = numbers[count(2 * k * kDim + d)];
            values_[count(k * kDim + d)] = numbers[count((2 * k + 1) * kDim + d)];
        }
    }
}

/// Of a row with each key. The inner loop is over what has sums of its own, here and below, so that compilers make
/// vectors of it.
void Attention::score(std::int64_t row, std::vector<double>& scores) const {
    std::ranges::fill(scores, 0);
    for (std::int64_t d = 0; d < kDim; ++d) {
        const double query = queries_[count(row * kDim + d)];
        const double* const keys = &keys_[count(d * kKeys)];
        for (std::int64_t k = 0; k < kKeys; ++k) scores[count(k)] += query * keys[k];
    }
    for (double& each : scores) each *= kSoftmaxScale;
}

void Attention::compute() {
    std::vector<double> weights(count(kKeys));
    for (std::int64_t row = 0; row < rows(); ++row) {
        score(row, weights);
        const double largest = std::ranges::max(weights);
        double sum = 0;
        for (double& weight : weights) sum += weight = std::exp(weight - largest);
        double* const exact = &exact_[count(row * kDim)];
        std::fill_n(exact, kDim, 0.0);
        for (std::int64_t k = 0; k < kKeys; ++k) {
            const double weight = weights[count(k)];
            const double* const values = &values_[count(k * kDim)];
            for (std::int64_t d = 0; d < kDim; ++d) exact[d] += weight * values[d];
        }
        for (std::int64_t d = 0; d < kDim; ++d) exact[d] /= sum;
    }
}

std::string Attention::spec() const {
    const auto name = [](kvjit_dtype type) {
        return std::string(type == KVJIT_F32 ? "f32" : type == KVJIT_F16 ? "f16" : "bf16");
    };
    std::string text =
        "op=MultiHeadCacheAttention,head_dim=128,group=4,is_causal=0,cache_mode=offset,layout=LHT2D,t1=" +
        name(kind_.t1);
    if (kind_.quant_bit == 0) return text + ",quant_bit=0,t2=" + name(kind_.t2);
    return text + ",t3=f16,quant_bit=" + std::to_string(kind_.quant_bit) +
           ",quant_group=" + std::to_string(kind_.quant_group);
}

Result<void> Attention::run(const Engine& engine, const Target& target) {
    const auto parsed = KernelSpec::parse(spec());
    if (!parsed) return parsed.error();
    const auto kernel = engine.kernel(*parsed, target);
    if (!kernel) return kernel.error();
    const std::vector<std::int64_t> seqstarts{0, kind_.tokens}, kvlens{kKeys}, cachestarts{0};
    Batch batch;
    batch.num_heads = kGroup;
    batch.max_tokens = kKeys;
    batch.max_seqlen = kind_.tokens;  // which GPUs' targets need
    batch.max_kvlen = kKeys;
    batch.softmax_scale = static_cast<float>(kSoftmaxScale);
    batch.set_seqstarts(seqstarts).set_kvlens(kvlens).set_cachestarts(cachestarts);
    PlanOptions options;
    options.stores_nothing = 1;
    auto plan = kernel->plan(batch, options);
    if (!plan) return plan.error();
    const auto type = kind_.quant_bit == 4 ? KVJIT_U8 : kind_.t2;
    Tensors tensors;
    tensors.query = Tensor(query_.data(), kind_.t1, {kind_.tokens, kGroup, kDim});
    tensors.attn_output = Tensor(output_.data(), kind_.t1, {kind_.tokens, kGroup, kDim});
    tensors.cache = Tensor(cache_.data(), type, {1, 1, kKeys, 2, kind_.quant_bit == 4 ? kDim / 2 : kDim});
    if (kind_.quant_bit != 0)
        tensors.scale = Tensor(scale_.data(), KVJIT_F16, {1, 1, kKeys, 2, kDim / kind_.quant_group});
    return plan->run(tensors);
}

double Attention::error() const {
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < exact_.size(); ++i) {
        const double off = std::fabs(read_element(output_.data(), kind_.t1, static_cast<std::int64_t>(i)) - exact_[i]);
        worst = worse(worst, off);
        largest = std::max(largest, std::fabs(exact_[i]));
    }
    return worst / largest;
}

double Attention::rounding() const {
    double worst = 0, largest = 0;
    for (const double exact : exact_) {
        worst = std::max(worst, std::fabs(rounded(exact, kind_.t1) - exact));
        largest = std::max(largest, std::fabs(exact));
    }
    return worst / largest;
}

}  // namespace kvjit::test

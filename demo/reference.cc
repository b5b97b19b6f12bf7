#include "reference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "terminal.h"

namespace demo {
namespace {

constexpr std::int64_t kDim = Shape::kHeadDim;
constexpr int kSamples = 16;  // a call
/// float16 outputs: docs/semantics.md, section 9.
constexpr double kAttentionTolerance = 2e-3;
/// Half a step, and what rounding the scale to float16 adds: at most 2^-11 of the largest of 127 codes.
constexpr double kStoreTolerance = 0.5 + 127.0 / 2048;

/// exp(q . k / sqrt(D)) for each visible key, divided by their sum.
std::vector<double> probabilities(const CacheMemory& memory, const RaggedBatch& batch, const LayerCall& call,
                                  Sample sample, const Half* query) {
    const std::int64_t kv_head = sample.head / (Shape::kHeads / Shape::kKvHeads);
    std::vector<double> scores(batch.visible_keys(sample.sequence, sample.row));
    for (std::size_t t = 0; t < scores.size(); ++t) {
        const std::int64_t slot = batch.slot(sample.sequence, t);
        for (std::int64_t d = 0; d < kDim; ++d) {
            scores[t] += query[d] * memory.element(call.layer, 0, kv_head, slot, d);
        }
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) sum += score = std::exp((score - largest) / std::sqrt(double(kDim)));
    for (double& score : scores) score /= sum;
    return scores;
}

double largest_step(const CacheMemory& memory, const LayerCall& call, int kv, std::int64_t head, std::int64_t slot,
                    const Half* given) {
    double largest = 0;
    for (std::int64_t d = 0; d < kDim; ++d) {
        const double off = std::abs(memory.element(call.layer, kv, head, slot, d) - given[d]);
        largest = std::max(largest, off / memory.scale_of(call.layer, kv, head, slot, d));
    }
    return largest;
}

}  // namespace

double attention_error(const CacheMemory& memory, const RaggedBatch& batch, const LayerCall& call, Sample sample) {
    const std::int64_t kv_head = sample.head / (Shape::kHeads / Shape::kKvHeads);
    const std::int64_t row = batch.seqstarts[sample.sequence] + sample.row;
    const std::int64_t offset = (row * Shape::kHeads + sample.head) * kDim;
    const std::vector<double> weights = probabilities(memory, batch, call, sample, call.query + offset);
    double error = 0, largest = 0;
    for (std::int64_t d = 0; d < kDim; ++d) {
        double sum = 0;
        for (std::size_t t = 0; t < weights.size(); ++t) {
            sum += weights[t] * memory.element(call.layer, 1, kv_head, batch.slot(sample.sequence, t), d);
        }
        error = std::max(error, std::abs(call.output[offset + d] - sum));
        largest = std::max(largest, std::abs(sum));
    }
    return error / largest;
}

double store_error(const CacheMemory& memory, const RaggedBatch& batch, const LayerCall& call, Sample sample) {
    const std::int64_t kv_head = sample.head / (Shape::kHeads / Shape::kKvHeads);
    const std::int64_t row = batch.seqstarts[sample.sequence] + sample.row;
    const std::int64_t offset = (row * Shape::kKvHeads + kv_head) * kDim;
    const std::int64_t slot = batch.slot(sample.sequence, batch.start_pos[sample.sequence] + sample.row);
    return std::max(largest_step(memory, call, 0, kv_head, slot, call.key + offset),
                    largest_step(memory, call, 1, kv_head, slot, call.value + offset));
}

Sample Checker::draw(const RaggedBatch& batch) {
    const auto below = [this](std::int64_t count) {
        return std::uniform_int_distribution<std::int64_t>(0, count - 1)(random_);
    };
    const std::int64_t b = below(batch.sequences());
    const std::int64_t row = below(batch.seqstarts[b + 1] - batch.seqstarts[b]);
    return {b, row, below(Shape::kHeads)};
}

// max(old, new) drops a NaN; max(new, old) keeps it, and the verdict with it.
void Checker::check(const CacheMemory& memory, const RaggedBatch& batch, const LayerCall& call) {
    for (int i = 0; i < kSamples; ++i) {
        const Sample sample = draw(batch);
        attention_ = std::max(attention_error(memory, batch, call, sample), attention_);
        store_ = std::max(store_error(memory, batch, call, sample), store_);
    }
    rows_ += kSamples;
}

void Checker::check_plain(const CacheMemory& memory, const RaggedBatch& batch, const LayerCall& call) {
    for (int i = 0; i < kSamples; ++i) plain_ = std::max(attention_error(memory, batch, call, draw(batch)), plain_);
}

void Checker::check_bits(int threads, const Half* many, const Half* one, std::int64_t elements) {
    threads_ = threads;
    elements_ += elements;
    for (std::int64_t i = 0; i < elements; ++i) different_ += many[i].bits() != one[i].bits();
}

bool Checker::is_right(std::int64_t late_compiles) const {
    return attention_ <= kAttentionTolerance && plain_ <= kAttentionTolerance && store_ <= kStoreTolerance &&
           different_ == 0 && late_compiles == 0;
}

bool Checker::print_verdict(std::int64_t late_compiles) const {
    std::printf("%s\n", bold("Checks").c_str());
    std::printf(
        "  attention      %lld rows differ from loops in double by at most %.1e of a row's largest element;"
        " float16 allows %.0e\n",
        static_cast<long long>(rows_), attention_, kAttentionTolerance);
    std::printf("  store          keys and values are at most %.3f of a quantisation step off; rounding allows %.2f\n",
                store_, kStoreTolerance);
    if (threads_ != 0) {
        std::printf("  plain loops    their rows differ from loops in double by at most %.1e\n", plain_);
        std::printf("  same bits      on 1 and on %d threads: %lld of %lld elements differ\n", threads_,
                    static_cast<long long>(different_), static_cast<long long>(elements_));
    }
    std::printf("  late compiles  %lld, after all was said to be ready\n\n", static_cast<long long>(late_compiles));
    const bool right = is_right(late_compiles);
    std::printf("%s\n", right ? green("PASS").c_str() : red("FAIL").c_str());
    return right;
}

}  // namespace demo

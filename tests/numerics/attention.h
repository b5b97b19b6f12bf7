// Attention over data that is hard for products of few bits: large scores, and a channel of the queries that is far
// larger than the others, as trained models have them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kvjit/kvjit.hpp"

namespace kvjit::test {

/// What the kernels compute with: T1, the cache's elements, and how many new tokens there are.
struct Kind {
    std::string name;
    kvjit_dtype t1;
    kvjit_dtype t2;     // of the cache; KVJIT_I8 where it is quantised
    int quant_bit = 0;  // 0, 8, 4
    int quant_group = 0;
    std::int64_t tokens = 1;  // 1: decode; many: prefill
};

/// The data: the largest |score|, and how many times larger than the others the queries' outlier channel is.
struct Difficulty {
    double score;
    double outlier;
};

/// The larger one; a NaN stays.
inline double worse(double one, double other) {
    return std::isnan(one) || one >= other ? one : other;
}

/// One sequence whose new tokens see all of kKeys keys, one kv head with kGroup query heads, and what must come out.
class Attention {
public:
    static constexpr std::int64_t kKeys = 1024, kGroup = 4, kDim = 128;

    /// Draws the cache.
    Attention(const Kind& kind, std::uint64_t seed);

    /// New queries, and what must come out of them.
    void draw_queries(const Difficulty& difficulty, std::uint64_t seed);
    /// Errors: the kernel's.
    Result<void> run(const Engine& engine, const Target& target);

    /// Largest |output - exact| as a part of the largest |exact|, after a run.
    double error() const;
    /// The same of the exact output, rounded to T1.
    double rounding() const;

private:
    void draw_cache(std::uint64_t seed);
    void keep_numbers(const std::vector<double>& numbers);
    void scale_queries(double largest_score);
    void compute();
    std::string spec() const;
    void score(std::int64_t row, std::vector<double>& scores) const;
    std::int64_t rows() const { return kind_.tokens * kGroup; }

    Kind kind_;
    std::vector<std::byte> query_, cache_, scale_, output_;
    std::vector<double> queries_, keys_, values_, exact_;  // (row, D), (D, key), (key, D), (row, D)
};

}  // namespace kvjit::test

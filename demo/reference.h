// What the demo's results are held against: attention as its formula says, in double, one row at a time.
#pragma once

#include <cstdint>
#include <random>

#include "call.h"

namespace demo {

struct Sample {
    std::int64_t sequence;
    std::int64_t row;   // of its new tokens
    std::int64_t head;  // query head
};

/// Largest |output - reference| over the row, as a part of the row's largest |reference|.
double attention_error(const CacheMemory& memory, const RaggedBatch& batch, const LayerCall& call, Sample sample);

/// How far the new token's stored key and value are from what was given, in steps of the quantisation: at most 0.5.
double store_error(const CacheMemory& memory, const RaggedBatch& batch, const LayerCall& call, Sample sample);

/// Looks at random samples and keeps the largest errors.
class Checker {
public:
    explicit Checker(std::uint64_t seed) : random_(seed) {}

    void check(const CacheMemory& memory, const RaggedBatch& batch, const LayerCall& call);
    /// Of the plain loops' results.
    void check_plain(const CacheMemory& memory, const RaggedBatch& batch, const LayerCall& call);
    /// Of one call's outputs on so many threads and on one.
    void check_bits(int threads, const Half* many, const Half* one, std::int64_t elements);
    /// Prints what was found and whether it is what the types allow, and what was compiled late. False: it is not.
    bool print_verdict(std::int64_t late_compiles) const;

private:
    Sample draw(const RaggedBatch& batch);
    bool is_right(std::int64_t late_compiles) const;

    std::mt19937_64 random_;
    double attention_ = 0, store_ = 0, plain_ = 0;
    std::int64_t rows_ = 0;
    std::int64_t elements_ = 0, different_ = 0;
    int threads_ = 0;
};

}  // namespace demo

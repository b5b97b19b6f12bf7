// What the demo's results are held against: attention as its formula says, in double, one row at a time.
#pragma once

#include <cstdint>
#include <random>

#include "model.h"

namespace demo {

/// One layer's call and what came of it.
struct LayerCall {
    std::int64_t layer;
    const Half* query;   // (S, H, D)
    const Half* key;     // (S, Hkv, D)
    const Half* value;   // (S, Hkv, D)
    const Half* output;  // (S, H, D)
};

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
    /// Prints them and whether they are what the types allow. False: they are not.
    bool print_verdict() const;

private:
    std::mt19937_64 random_;
    double attention_ = 0, store_ = 0;
    std::int64_t rows_ = 0;
};

}  // namespace demo

// The attention of a model's layers: shape, cache memory, the arrays of a step's batch, made-up activations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvjit/kvjit.hpp"
#include "memory.h"
#include "scheduler.h"

namespace demo {

using Half = kvjit::half;

/// Llama 3 8B's attention over an int8 cache.
struct Shape {
    static constexpr std::int64_t kLayers = 32;  // of the whole model
    static constexpr std::int64_t kHeads = 32;
    static constexpr std::int64_t kKvHeads = 8;
    static constexpr std::int64_t kHeadDim = 128;
    static constexpr std::int64_t kPageSize = 128;
    static constexpr std::int64_t kQuantGroup = 8;  // elements that share a scale
    static constexpr std::int64_t kScales = kHeadDim / kQuantGroup;
    /// Of one token in one layer: keys and values of all kv heads, codes and scales.
    static constexpr std::int64_t kTokenBytes = 2 * kKvHeads * (kHeadDim + kScales * 2);

    static kvjit::KernelSpec spec(kvjit_op op);
    /// "4 of 32 layers": how much of the model so many are; "64 layers" where it has fewer.
    static std::string part(std::int64_t layers);
};

/// (L, 2, H, T, D) int8, and (L, 2, H, T, D / quant_group) float16.
class CacheMemory {
public:
    CacheMemory(Memory& memory, std::int64_t layers, std::int64_t tokens);

    kvjit::Tensor cache() const;
    kvjit::Tensor scale() const;
    std::int64_t layers() const { return layers_; }
    std::int64_t tokens() const { return tokens_; }
    /// (T, D) and (T, D / quant_group) of the keys (kv 0) or values (1) of a head.
    const std::int8_t* codes(std::int64_t layer, int kv, std::int64_t head) const {
        return codes_.get() + row(layer, kv, head, 0) * Shape::kHeadDim;
    }
    const Half* scales(std::int64_t layer, int kv, std::int64_t head) const {
        return scales_.get() + row(layer, kv, head, 0) * Shape::kScales;
    }
    /// Element d of the key (kv 0) or value (1) that lies in a slot.
    double element(std::int64_t layer, int kv, std::int64_t head, std::int64_t slot, std::int64_t d) const;
    /// The scale of that element.
    double scale_of(std::int64_t layer, int kv, std::int64_t head, std::int64_t slot, std::int64_t d) const;

private:
    std::int64_t row(std::int64_t layer, int kv, std::int64_t head, std::int64_t slot) const;

    std::int64_t layers_, tokens_;
    Array<std::int8_t> codes_;
    Array<Half> scales_;
};

/// A step's batch.
struct RaggedBatch {
    explicit RaggedBatch(const Step& step);

    kvjit::Batch view(const CacheMemory& cache) const;
    std::int64_t sequences() const { return static_cast<std::int64_t>(start_pos.size()); }
    std::int64_t new_tokens() const { return seqstarts.back(); }
    std::int64_t keys(std::int64_t b) const { return kvstarts[b + 1] - kvstarts[b]; }
    /// Keys that new token `row` of sequence b sees: all in a decoding one, else those up to its own.
    std::int64_t visible_keys(std::int64_t b, std::int64_t row) const {
        return b < decoding ? keys(b) : start_pos[b] + row + 1;
    }
    /// Where position t of sequence b lies in the cache.
    std::int64_t slot(std::int64_t b, std::int64_t t) const;

    std::int64_t decoding = 0;
    std::int64_t columns = 1;                       // of the page table
    std::vector<std::int64_t> seqstarts, kvstarts;  // (B+1)
    std::vector<std::int64_t> start_pos;            // (B)
    std::vector<std::int64_t> pages;                // (B, columns); -1 past a sequence's last page
};

/// A batch as kvjit wants it: with arrays where kernels reach them. They must live as long as a plan over them.
class PlacedBatch {
public:
    PlacedBatch(Memory& memory, const RaggedBatch& batch, const CacheMemory& cache);
    const kvjit::Batch& view() const { return view_; }

private:
    Array<std::int64_t> arrays_;
    kvjit::Batch view_;
};

/// What the rest of a model would compute: queries, keys and values, here windows into one pool of normal numbers.
class Activations {
public:
    /// A pool of `rows` rows of head_dim elements.
    Activations(Memory& memory, std::int64_t rows, std::uint64_t seed);
    /// (rows, heads, head_dim), other ones each time.
    const Half* take(std::int64_t rows, std::int64_t heads);

private:
    std::uint64_t rows_;
    Array<Half> pool_;
    std::uint64_t state_;
};

}  // namespace demo

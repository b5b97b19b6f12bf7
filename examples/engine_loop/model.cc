#include "model.h"

#include <algorithm>
#include <random>
#include <stdexcept>

namespace demo {
namespace {

constexpr std::size_t kPoolRows = std::size_t{1} << 15;  // of head_dim elements: 8 MB

}  // namespace

std::string Shape::spec(const char* op) {
    return std::string("op=") + op + ",head_dim=" + std::to_string(kHeadDim) +
           ",group=" + std::to_string(kHeads / kKvHeads) +
           ",t1=f16,quant_bit=8,quant_group=" + std::to_string(kQuantGroup) +
           ",cache_mode=page_table,page_size=" + std::to_string(kPageSize) + ",is_causal=1,layout=L2HTD";
}

CacheMemory::CacheMemory(std::int64_t layers, std::int64_t tokens)
    : layers_(layers),
      tokens_(tokens),
      codes_(static_cast<std::size_t>(row(layers, 0, 0, 0) * Shape::kHeadDim)),
      scales_(static_cast<std::size_t>(row(layers, 0, 0, 0) * Shape::kScales)) {}

std::int64_t CacheMemory::row(std::int64_t layer, int kv, std::int64_t head, std::int64_t slot) const {
    return ((layer * 2 + kv) * Shape::kKvHeads + head) * tokens_ + slot;
}

kvjit::Tensor CacheMemory::cache() const {
    return {codes_.data(), KVJIT_I8, {layers_, 2, Shape::kKvHeads, tokens_, Shape::kHeadDim}};
}

kvjit::Tensor CacheMemory::scale() const {
    return {scales_.data(), KVJIT_F16, {layers_, 2, Shape::kKvHeads, tokens_, Shape::kScales}};
}

double CacheMemory::element(std::int64_t layer, int kv, std::int64_t head, std::int64_t slot, std::int64_t d) const {
    return codes_[row(layer, kv, head, slot) * Shape::kHeadDim + d] * scale_of(layer, kv, head, slot, d);
}

double CacheMemory::scale_of(std::int64_t layer, int kv, std::int64_t head, std::int64_t slot, std::int64_t d) const {
    return to_float(scales_[row(layer, kv, head, slot) * Shape::kScales + d / Shape::kQuantGroup]);
}

RaggedBatch::RaggedBatch(const Step& step) : decoding(step.decoding), seqstarts{0}, kvstarts{0} {
    for (const Work& work : step.work) {
        start_pos.push_back(work.sequence->stored);
        seqstarts.push_back(seqstarts.back() + work.tokens);
        kvstarts.push_back(kvstarts.back() + work.sequence->stored + work.tokens);
        columns = std::max(columns, static_cast<std::int64_t>(work.sequence->pages.size()));
    }
    pages.assign(static_cast<std::size_t>(columns * sequences()), -1);
    for (std::int64_t b = 0; b < sequences(); ++b) {
        const std::vector<std::int64_t>& row = step.work[b].sequence->pages;
        std::copy(row.begin(), row.end(), pages.begin() + b * columns);
    }
}

kvjit::Batch RaggedBatch::view(const CacheMemory& memory) const {
    kvjit::Batch batch;
    batch.batch_size = sequences();
    batch.num_heads = Shape::kHeads;
    batch.num_kv_heads = Shape::kKvHeads;
    batch.num_layers = memory.layers();
    batch.max_tokens = memory.tokens();
    batch.decoding_batches = decoding;
    batch.seqstarts = seqstarts.data();
    batch.kvstarts = kvstarts.data();
    batch.start_pos = start_pos.data();
    batch.cachestarts = kvjit::Tensor(pages.data(), KVJIT_I64, {sequences(), columns});
    return batch;
}

std::int64_t RaggedBatch::slot(std::int64_t b, std::int64_t t) const {
    return pages[b * columns + t / Shape::kPageSize] + t % Shape::kPageSize;
}

Activations::Activations(std::uint64_t seed) : pool_(kPoolRows * Shape::kHeadDim), state_(seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    for (Half& element : pool_) element = to_half(normal(random));
}

const Half* Activations::take(std::int64_t rows, std::int64_t heads) {
    const auto wanted = static_cast<std::uint64_t>(rows * heads);
    if (wanted >= kPoolRows) throw std::runtime_error("a step has more tokens than the pool of activations");
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return pool_.data() + (state_ >> 33) % (kPoolRows - wanted) * Shape::kHeadDim;
}

}  // namespace demo

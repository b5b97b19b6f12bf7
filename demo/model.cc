#include "model.h"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

namespace demo {

kvjit::KernelSpec Shape::spec(kvjit_op op) {
    const auto spec = kvjit::KernelSpec::parse("op=MultiHeadCacheAttention,head_dim=" + std::to_string(kHeadDim) +
                                               ",group=" + std::to_string(kHeads / kKvHeads) +
                                               ",t1=f16,quant_bit=8,quant_group=" + std::to_string(kQuantGroup) +
                                               ",cache_mode=page_table,page_size=" + std::to_string(kPageSize) +
                                               ",is_causal=1,layout=L2HTD");
    return spec.value().for_op(op).value();
}

std::string Shape::part(std::int64_t layers) {
    const std::string of_model = layers <= kLayers ? " of " + std::to_string(kLayers) : "";
    return std::to_string(layers) + of_model + " layers";
}

CacheMemory::CacheMemory(Memory& memory, std::int64_t layers, std::int64_t tokens)
    : layers_(layers),
      tokens_(tokens),
      codes_(take_array<std::int8_t>(memory, row(layers, 0, 0, 0) * Shape::kHeadDim)),
      scales_(take_array<Half>(memory, row(layers, 0, 0, 0) * Shape::kScales)) {}

std::int64_t CacheMemory::row(std::int64_t layer, int kv, std::int64_t head, std::int64_t slot) const {
    return ((layer * 2 + kv) * Shape::kKvHeads + head) * tokens_ + slot;
}

kvjit::Tensor CacheMemory::cache() const {
    return {codes_.get(), KVJIT_I8, {layers_, 2, Shape::kKvHeads, tokens_, Shape::kHeadDim}};
}

kvjit::Tensor CacheMemory::scale() const {
    return {scales_.get(), KVJIT_F16, {layers_, 2, Shape::kKvHeads, tokens_, Shape::kScales}};
}

double CacheMemory::element(std::int64_t layer, int kv, std::int64_t head, std::int64_t slot, std::int64_t d) const {
    return codes(layer, kv, head)[slot * Shape::kHeadDim + d] * scale_of(layer, kv, head, slot, d);
}

double CacheMemory::scale_of(std::int64_t layer, int kv, std::int64_t head, std::int64_t slot, std::int64_t d) const {
    return scales(layer, kv, head)[slot * Shape::kScales + d / Shape::kQuantGroup];
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

kvjit::Batch RaggedBatch::view(const CacheMemory& cache) const {
    kvjit::Batch batch;
    batch.num_heads = Shape::kHeads;
    batch.num_kv_heads = Shape::kKvHeads;
    batch.num_layers = cache.layers();
    batch.max_tokens = cache.tokens();
    batch.decoding_batches = decoding;
    batch.set_seqstarts(seqstarts).set_kvstarts(kvstarts).set_start_pos(start_pos);
    batch.set_cachestarts(pages, {sequences(), columns});
    return batch;
}

std::int64_t RaggedBatch::slot(std::int64_t b, std::int64_t t) const {
    return pages[b * columns + t / Shape::kPageSize] + t % Shape::kPageSize;
}

PlacedBatch::PlacedBatch(Memory& memory, const RaggedBatch& batch, const CacheMemory& cache)
    : view_(batch.view(cache)) {
    const std::size_t starts = batch.seqstarts.size() + batch.kvstarts.size() + batch.start_pos.size();
    arrays_ = take_array<std::int64_t>(memory, starts + batch.pages.size());
    std::int64_t* next = arrays_.get();
    const auto place = [&next](const std::vector<std::int64_t>& array) {
        return std::exchange(next, std::copy(array.begin(), array.end(), next));
    };
    view_.seqstarts = place(batch.seqstarts);
    view_.kvstarts = place(batch.kvstarts);
    view_.start_pos = place(batch.start_pos);
    view_.cachestarts.data = place(batch.pages);
}

Activations::Activations(Memory& memory, std::int64_t rows, std::uint64_t seed)
    : rows_(rows), pool_(take_array<Half>(memory, rows * Shape::kHeadDim)), state_(seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    std::generate_n(pool_.get(), rows * Shape::kHeadDim, [&] { return Half(normal(random)); });
}

const Half* Activations::take(std::int64_t rows, std::int64_t heads) {
    const auto wanted = static_cast<std::uint64_t>(rows * heads);
    if (wanted >= rows_) throw std::runtime_error("a step has more tokens than the pool of activations");
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return pool_.get() + (state_ >> 33) % (rows_ - wanted) * Shape::kHeadDim;
}

}  // namespace demo

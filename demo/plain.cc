#include "plain.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "limits/together.h"
#include "plain_row.h"

namespace demo {
namespace {

static_assert(Shape::kHeadDim == 128 && Shape::kQuantGroup == 8 && Shape::kPageSize == 128, "plain_row.cc has these");

/// The sequence that a row of the batch belongs to.
std::int64_t sequence_of(const RaggedBatch& batch, std::int64_t row) {
    const auto next = std::upper_bound(batch.seqstarts.begin(), batch.seqstarts.end(), row);
    return next - batch.seqstarts.begin() - 1;
}

PlainRow row_of(const CacheMemory& cache, const RaggedBatch& batch, const LayerCall& call, std::int64_t row,
                std::int64_t head) {
    const std::int64_t b = sequence_of(batch, row), kv_head = head / (Shape::kHeads / Shape::kKvHeads);
    const std::int64_t offset = (row * Shape::kHeads + head) * Shape::kHeadDim;
    return {call.query + offset,
            call.output + offset,
            cache.codes(call.layer, 0, kv_head),
            cache.codes(call.layer, 1, kv_head),
            cache.scales(call.layer, 0, kv_head),
            cache.scales(call.layer, 1, kv_head),
            batch.pages.data() + b * batch.columns,
            batch.visible_keys(b, row - batch.seqstarts[b]),
            nullptr};
}

}  // namespace

double attend_plainly(const CacheMemory& cache, const RaggedBatch& batch, const LayerCall& call, int threads) {
    std::vector<std::vector<float>> scores(threads, std::vector<float>(batch.columns * Shape::kPageSize));
    std::atomic<std::int64_t> next{0};
    return kvjit::limits::run_together(threads, [&](int thread) {
        for (std::int64_t item; (item = next++) < batch.new_tokens() * Shape::kHeads;) {
            PlainRow row = row_of(cache, batch, call, item / Shape::kHeads, item % Shape::kHeads);
            row.scores = scores[thread].data();
            attend_plain_row(row);
        }
    });
}

}  // namespace demo

#include "call/run_work.h"

#include <algorithm>

#include "check/arithmetic.h"
#include "common/batch_rules.h"
#include "common/key_range.h"
#include "generator/operator.h"

namespace kvjit::rt {
namespace {

/// first + (first + 1) + ... of `count` numbers, each raised to 0 and lowered to `limit`.
/// Preconditions: `count` and `limit` are bounded.
std::int64_t sum_clamped(std::int64_t first, std::int64_t count, std::int64_t limit) {
    first = std::min(first, limit);
    const std::int64_t last = first + count;
    const std::int64_t begin = std::max<std::int64_t>(first, 0), end = std::clamp(last, begin, limit);
    const std::int64_t above = std::max<std::int64_t>(0, last - limit);
    // Of begin..end-1 the first and the last, the second and the last but one, ... have one sum.
    const std::int64_t inside = end == begin ? 0 : saturating_product(end - begin, begin + end - 1) / 2;
    return saturating_sum(inside, saturating_product(above, limit));
}

struct Sequence {
    std::int64_t keys, tokens;
    Reach reach;

    std::int64_t first() const { return keys - tokens; }  // position of new token 0
    /// The keys that some row sees.
    std::int64_t seen() const {
        if (tokens == 0) return 0;
        return seen_by_some(keys_in_reach(keys, first(), reach), keys_in_reach(keys, keys - 1, reach)).count();
    }
    /// Pairs of a new token and a key that it sees.
    std::int64_t pairs() const {
        const std::int64_t ends = sum_clamped(saturating_sum(first() + 1, reach.after), tokens, keys);
        return ends - sum_clamped(first() - std::min(reach.before, keys), tokens, keys);
    }
};

std::int64_t tensor_bytes(const kvjit_tensor& tensor) {
    std::int64_t bytes = tensor.rank == 0 ? 0 : element_bytes(tensor);
    for (std::int32_t axis = 0; axis < tensor.rank; ++axis) bytes = saturating_product(bytes, tensor.shape[axis]);
    return bytes;
}

}  // namespace

std::int64_t RunWork::bytes(const gen::KernelSpec& spec, const kvjit_tensors& tensors) const {
    std::int64_t bytes = 0;
    for (const gen::OperatorTensor& tensor : gen::operator_of(spec).tensors) {
        if (tensor.use == gen::TensorUse::kCache || tensor.use == gen::TensorUse::kScale) continue;
        bytes = saturating_sum(bytes, tensor_bytes(tensors.*tensor.member));
    }
    if (tensors.current_key.rank != 0) bytes = saturating_sum(bytes, stored);
    // A load reads the keys, the values, or both.
    const std::int64_t halves = gen::attends(spec) ? 2 : (tensors.key.rank != 0) + (tensors.value.rank != 0);
    return saturating_sum(bytes, saturating_product(read / 2, halves));
}

RunWork run_work(const BatchView& batch) {
    RunWork work;
    if (!has_keys(batch.keys)) return work;
    const bool attends = gen::attends(batch.spec), cached = gen::has_cache(batch.spec);
    // Bytes of a token's keys and values in one layer of the cache.
    const std::int64_t token = cached ? saturating_product(2 * row_bytes(batch.spec), batch.num_kv_heads) : 0;
    std::int64_t pairs = 0;
    for (std::int64_t b = 0; b < batch.batch_size; ++b) {
        const Sequence sequence{bounded(key_count(batch.keys, b)), bounded(length(batch.seqstarts, b)), batch.reach(b)};
        const std::int64_t seen = attends ? sequence.seen() : sequence.keys;
        work.read = saturating_sum(work.read, saturating_product(seen, token));
        if (batch.stores) work.stored = saturating_sum(work.stored, saturating_product(sequence.tokens, token));
        if (attends) pairs = saturating_sum(pairs, sequence.pairs());
    }
    // A score and a weighted value take a multiply-add for each element of a row.
    const std::int64_t of_pair =
        saturating_product(std::int64_t{4}, batch.num_heads, std::int64_t{batch.spec.head_dim});
    work.operations = saturating_product(pairs, of_pair);
    return work;
}

}  // namespace kvjit::rt

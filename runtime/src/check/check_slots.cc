// No slot for two new tokens: new tokens become runs of neighbouring slots, sorted runs overlap only with their
// neighbours.
#include <algorithm>
#include <vector>

#include "check/batch_parts.h"
#include "check/fault.h"

namespace kvjit::rt {
namespace {

using gen::KernelSpec;
using gen::Result;

/// Slots begin..end-1; of a block cache, block * page_size + token.
struct Run {
    std::int64_t begin, end;
    std::int64_t sequence;
};

void append(std::vector<Run>& runs, const Run& run) {
    const bool continues = !runs.empty() && runs.back().sequence == run.sequence && runs.back().end == run.begin;
    if (continues) {
        runs.back().end = run.end;
    } else {
        runs.push_back(run);
    }
}

/// Entries are in range: no sum or product below overflows.
template <class Index>
void append_sequence(const KernelSpec& spec, const kvjit_batch& batch, std::int64_t b, std::vector<Run>& runs) {
    const std::int64_t m = batch.kvstarts[b + 1] - batch.kvstarts[b];
    const std::int64_t tokens = tokens_per_entry(spec);
    const std::int64_t scale = spec.cache_mode == KVJIT_BLOCK_TABLE ? tokens : 1;
    const Index* row = table_row<Index>(spec, batch, b);
    for (std::int64_t t = batch.start_pos[b]; t < m;) {
        const std::int64_t inside = t % tokens;
        const std::int64_t count = std::min(tokens - inside, m - t);
        const std::int64_t begin = row[t / tokens] * scale + inside;
        append(runs, {begin, begin + count, b});
        t += count;
    }
}

template <class Index>
std::vector<Run> new_runs(const KernelSpec& spec, const kvjit_batch& batch) {
    std::vector<Run> runs;
    runs.reserve(static_cast<std::size_t>(batch.batch_size));
    for (std::int64_t b = 0; b < batch.batch_size; ++b) append_sequence<Index>(spec, batch, b, runs);
    return runs;
}

std::string slot_text(const KernelSpec& spec, std::int64_t slot) {
    if (spec.cache_mode != KVJIT_BLOCK_TABLE) return text("slot ", slot);
    return text("token ", slot % spec.page_size, " of block ", slot / spec.page_size);
}

std::unexpected<gen::Error> refuse_shared(const KernelSpec& spec, const Run& a, const Run& b) {
    const std::int64_t slot = b.begin;
    const auto [first, second] = std::minmax(a.sequence, b.sequence);
    std::string message = text("cachestarts sends two new tokens, of sequences ", first, " and ", second, ", to ",
                               slot_text(spec, slot), "; each takes one of its own", kIfStored);
    const bool blocks = spec.cache_mode == KVJIT_BLOCK_TABLE;
    return gen::fail(KVJIT_BAD_INDEX, "cachestarts", std::move(message), blocks ? slot / spec.page_size : slot, 0,
                     second);
}

}  // namespace

Result<void> check_new_slots(const KernelSpec& spec, const kvjit_batch& batch) {
    if (!gen::has_cache(spec)) return {};
    std::vector<Run> runs =
        spec.index_type == KVJIT_I32 ? new_runs<std::int32_t>(spec, batch) : new_runs<std::int64_t>(spec, batch);
    std::ranges::sort(runs, {}, &Run::begin);
    for (std::size_t i = 1; i < runs.size(); ++i) {
        if (runs[i].begin < runs[i - 1].end) return refuse_shared(spec, runs[i - 1], runs[i]);
    }
    return {};
}

}  // namespace kvjit::rt

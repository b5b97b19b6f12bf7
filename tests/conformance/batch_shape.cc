#include "conformance/batch_shape.h"

#include <algorithm>
#include <limits>

namespace kvjit::test {
namespace {

constexpr std::int64_t kMaxWork = 30'000'000;
constexpr std::int64_t kNoEntry = -1;
constexpr float kNoSink = -std::numeric_limits<float>::infinity();

std::int64_t new_tokens_of(const Case& which, Rng& rng) {
    static const std::vector<std::int64_t> tile_edges = {7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65};
    switch (which.new_tokens) {
        case NewTokens::kOne:
            return 1;
        case NewTokens::kNoneOrOne:
            return rng.below(2);
        case NewTokens::kTwoOrThree:
            return rng.between(2, 3);
        case NewTokens::kFew:
            return rng.between(2, 5);
        case NewTokens::kTileEdge:
            return rng.pick(tile_edges);
        case NewTokens::kRagged:
            return rng.chance(0.2) ? rng.pick(tile_edges) : rng.below(12);
    }
    return 1;
}

std::int64_t past_tokens_of(const Case& which, Rng& rng) {
    static const std::vector<std::int64_t> vector_edges = {3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65};
    static const std::vector<std::int64_t> chunk_edges = {510, 511, 512, 513};
    static const std::vector<std::int64_t> chunks = {1023, 1024, 1025, 1100};
    switch (which.past_tokens) {
        case PastTokens::kNone:
            return 0;
        case PastTokens::kFew:
            return rng.between(1, 9);
        case PastTokens::kVectorEdge:
            return rng.pick(vector_edges);
        case PastTokens::kChunkEdge:
            return rng.pick(chunk_edges);
        case PastTokens::kChunks:
            return rng.pick(chunks);
        case PastTokens::kRagged:
            return rng.chance(0.3) ? rng.pick(chunk_edges) : rng.below(150);
    }
    return 0;
}

/// Whether new tokens are the last of their sequence's keys. Else they and the keys have nothing to do with each other.
bool new_are_keys(const Case& which) {
    return which.spec.op != KVJIT_OP_MULTI_HEAD_ATTENTION && which.stores != Stores::kNever;
}

std::size_t u(std::int64_t i) {
    return static_cast<std::size_t>(i);
}

/// Entries of each sequence's table row: pages that it needs.
std::int64_t pages_of(const Problem& problem, std::int64_t b) {
    return (problem.kv_tokens(b) + problem.spec.page_size - 1) / problem.spec.page_size;
}

/// `count` disjoint runs of `length` slots, in random order, with gaps; `end` becomes the first slot past all.
std::vector<std::int64_t> scattered_runs(const std::vector<std::int64_t>& lengths, Rng& rng, std::int64_t& end) {
    std::vector<std::size_t> order(lengths.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    rng.shuffle(order);
    std::vector<std::int64_t> starts(lengths.size());
    end = rng.between(0, 3);
    for (const std::size_t i : order) {
        starts[i] = end;
        end += lengths[i] + rng.below(3);
    }
    return starts;
}

/// What any plan may read, and only those that store nothing may be given: entries that several pages have.
void share(const Case& which, std::vector<std::int64_t>& entries, Rng& rng) {
    if (which.stores != Stores::kNever) return;
    for (std::int64_t& entry : entries) {
        if (rng.chance(0.4)) entry = rng.pick(entries);
    }
}

/// Sequences that begin inside others.
void share_offsets(const Case& which, Problem& problem, Rng& rng, std::int64_t end) {
    share(which, problem.cachestarts, rng);
    for (std::int64_t b = 0; b < problem.batch_size(); ++b) {
        problem.cachestarts[u(b)] = std::min(problem.cachestarts[u(b)], end - problem.kv_tokens(b));
    }
}

/// Sequences that read another one's row.
void share_rows(const Case& which, Problem& problem, Rng& rng) {
    for (std::int64_t b = 0; which.stores == Stores::kNever && b < problem.batch_size(); ++b) {
        const std::int64_t other = rng.below(problem.batch_size());
        const bool long_enough = pages_of(problem, other) >= pages_of(problem, b);
        if (long_enough) problem.row_index[u(b)] = problem.row_index[u(other)];
    }
}

void place_offsets(const Case& which, Problem& problem, Rng& rng, Placement& placement) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t b = 0; b < problem.batch_size(); ++b) lengths.push_back(problem.kv_tokens(b));
    problem.cachestarts = scattered_runs(lengths, rng, placement.max_tokens);
    share_offsets(which, problem, rng, placement.max_tokens);
    placement.table_shape = {problem.batch_size()};
}

void place_single_tokens(const Case& which, Problem& problem, Rng& rng, Placement& placement) {
    const std::int64_t tokens = problem.kvstarts.back();
    problem.cachestarts = scattered_runs(std::vector<std::int64_t>(u(tokens), 1), rng, placement.max_tokens);
    share(which, problem.cachestarts, rng);
    placement.table_shape = {tokens};
}

/// A block for each sequence, as long as the longest, or longer.
void place_sequences(const Case& which, Problem& problem, Rng& rng, Placement& placement) {
    const std::vector<std::int64_t> ones(u(problem.batch_size()), 1);
    problem.cachestarts = scattered_runs(ones, rng, placement.num_blocks);
    share(which, problem.cachestarts, rng);
    for (std::int64_t b = 0; b < problem.batch_size(); ++b)
        placement.max_tokens = std::max(placement.max_tokens, problem.kv_tokens(b));
    placement.max_tokens += rng.below(4);
    placement.table_shape = {problem.batch_size()};
}

/// Entries for all pages of all sequences, sequence after sequence.
std::vector<std::int64_t> page_entries(const Case& which, const Problem& problem, Rng& rng, Placement& placement) {
    std::int64_t pages = 0;
    for (std::int64_t b = 0; b < problem.batch_size(); ++b) pages += pages_of(problem, b);
    const bool blocks = problem.spec.cache_mode != KVJIT_PAGE_TABLE;
    const std::int64_t run = blocks ? 1 : problem.spec.page_size;
    std::int64_t end = 0;
    auto entries = scattered_runs(std::vector<std::int64_t>(u(pages), run), rng, end);
    share(which, entries, rng);
    placement.max_tokens = blocks ? problem.spec.page_size : end;
    placement.num_blocks = blocks ? end : 0;
    return entries;
}

/// Rows of different length, one after the other, some with entries that nothing needs.
void lay_csr(const Case& which, Problem& problem, const std::vector<std::int64_t>& entries, Rng& rng,
             Placement& placement) {
    auto next = entries.begin();
    for (std::int64_t b = 0; b < problem.batch_size(); ++b) {
        problem.rowstarts.push_back(static_cast<std::int64_t>(problem.cachestarts.size()));
        for (std::int64_t page = 0; page < pages_of(problem, b); ++page) problem.cachestarts.push_back(*next++);
        const bool counted = which.keys_by == KeysBy::kLastPage;  // all pages are used
        if (!counted) problem.cachestarts.resize(problem.cachestarts.size() + u(rng.below(3)), kNoEntry);
    }
    problem.rowstarts.push_back(static_cast<std::int64_t>(problem.cachestarts.size()));
    placement.table_shape = {problem.rowstarts.back()};
}

void lay_rows(Problem& problem, const std::vector<std::int64_t>& entries, bool indexed, Rng& rng,
              Placement& placement) {
    const std::int64_t batch = problem.batch_size();
    std::vector<std::int64_t> rows(u(indexed ? batch + 2 : batch));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
    if (indexed) rng.shuffle(rows);
    for (std::int64_t b = 0; b < batch; ++b) {
        problem.table_columns = std::max(problem.table_columns, pages_of(problem, b));
    }
    problem.table_columns += rng.below(3);
    placement.table_shape = {static_cast<std::int64_t>(rows.size()), problem.table_columns};
    problem.cachestarts.assign(rows.size() * u(problem.table_columns), kNoEntry);
    auto next = entries.begin();
    for (std::int64_t b = 0; b < batch; ++b) {
        for (std::int64_t page = 0; page < pages_of(problem, b); ++page) {
            problem.cachestarts[u(rows[u(b)] * problem.table_columns + page)] = *next++;
        }
    }
    if (indexed) problem.row_index.assign(rows.begin(), rows.begin() + batch);
}

/// Multiplications that the oracle needs for one sequence.
std::int64_t work_of(const Problem& problem, std::int64_t n, std::int64_t m) {
    return std::max<std::int64_t>(n, 1) * std::max<std::int64_t>(m, 1) * problem.num_heads * problem.spec.head_dim;
}

void add_sequence(const Case& which, Problem& problem, Rng& rng) {
    std::int64_t n = new_tokens_of(which, rng);
    std::int64_t past = past_tokens_of(which, rng);
    const std::int64_t share = kMaxWork / which.batch_size;
    while (n > 2 && work_of(problem, n, past + n) > share) n /= 2;
    while (past > 40 && work_of(problem, n, past + n) > share) past /= 2;
    std::int64_t m = past + n;
    // Else m is free. Fewer keys than queries leave the first rows nothing to see.
    if (!new_are_keys(which)) m = rng.chance(0.3) ? rng.below(n + 1) : past;
    if (new_are_keys(which)) problem.start_pos.push_back(past);
    problem.seqstarts.push_back(problem.seqstarts.back() + n);
    problem.kvstarts.push_back(problem.kvstarts.back() + m);
}

/// Slots of new tokens, as the table has them, but for some that go nowhere.
void choose_slots(const Case& which, Problem& problem, Rng& rng, const Placement& placement) {
    if (which.slots_by == SlotsBy::kTable) return;
    if (placement.num_blocks != 0) problem.block_tokens = placement.max_tokens;
    for (std::int64_t b = 0; b < problem.batch_size(); ++b) {
        for (std::int64_t i = 0; i < problem.new_tokens(b); ++i) {
            const Slot slot = slot_of(problem, b, problem.start_pos[u(b)] + i);
            const std::int64_t number = slot.block * problem.block_tokens + slot.token;
            problem.store_slots.push_back(rng.chance(0.2) ? -1 - rng.below(2) : number);
        }
    }
}

}  // namespace

Problem shape_problem(const Case& which, Rng& rng) {
    Problem problem;
    problem.spec = which.spec;
    problem.num_kv_heads = which.num_kv_heads;
    problem.num_heads = which.num_kv_heads * which.spec.group;
    problem.num_layers = which.num_layers;
    problem.layer = rng.below(which.num_layers);
    problem.num_repeat = which.num_repeat;
    problem.seqstarts = problem.kvstarts = {0};
    for (std::int64_t b = 0; b < which.batch_size; ++b) add_sequence(which, problem, rng);
    problem.decoding_batches = which.decoding == 0   ? 0
                               : which.decoding == 1 ? (which.batch_size + 1) / 2
                                                     : which.batch_size;
    // Nobody looks at the positions of what nobody stores.
    const bool ignored = which.stores == Stores::kNever && rng.chance(0.5);
    if (ignored) problem.start_pos.assign(u(which.batch_size), -77);
    if (which.own_scale) {
        const double sign = rng.chance(0.25) ? -1 : 1;
        problem.softmax_scale = static_cast<float>(sign * (0.05 + 0.2 * rng.uniform()));
    }
    if (problem.spec.has_window) problem.window_left = which.window_left, problem.window_right = which.window_right;
    if (problem.spec.has_soft_cap) problem.soft_cap = which.soft_cap;
    for (std::int64_t h = 0; problem.spec.has_sinks && h < problem.num_heads; ++h) {
        problem.sinks.push_back(rng.chance(0.2) ? kNoSink : static_cast<float>(3 * rng.normal()));
    }
    for (std::int64_t h = 0; which.own_slopes && h < problem.num_heads; ++h) {
        problem.slopes.push_back(static_cast<float>(rng.uniform()));
    }
    return problem;
}

Placement place_tokens(const Case& which, Problem& problem, Rng& rng) {
    Placement placement;
    if (which.spec.cache_mode == KVJIT_OFFSET) {
        place_offsets(which, problem, rng, placement);
    } else if (which.spec.cache_mode == KVJIT_TOKEN_TABLE) {
        place_single_tokens(which, problem, rng, placement);
    } else if (which.spec.cache_mode == KVJIT_SEQUENCE_TABLE) {
        place_sequences(which, problem, rng, placement);
    } else {
        const auto entries = page_entries(which, problem, rng, placement);
        if (which.rows == TableRows::kCsr) {
            lay_csr(which, problem, entries, rng, placement);
        } else {
            lay_rows(problem, entries, which.rows == TableRows::kIndexed, rng, placement);
            if (which.rows == TableRows::kIndexed) share_rows(which, problem, rng);
        }
    }
    if (which.layer_tables) ++(placement.num_blocks != 0 ? placement.num_blocks : placement.max_tokens);
    choose_slots(which, problem, rng, placement);
    return placement;
}

std::int64_t first_in_sight(const Problem& problem, std::int64_t b) {
    if (!problem.spec.has_window || problem.window_left < 0) return 0;
    return std::max<std::int64_t>(0, problem.kv_tokens(b) - problem.new_tokens(b) - problem.window_left);
}

std::vector<std::int64_t> entries_in_sight(const Problem& problem) {
    const kvjit_cache_mode mode = static_cast<kvjit_cache_mode>(problem.spec.cache_mode);
    if (mode == KVJIT_OFFSET || mode == KVJIT_SEQUENCE_TABLE) return problem.cachestarts;
    const std::int64_t page = mode == KVJIT_TOKEN_TABLE ? 1 : problem.spec.page_size;
    std::vector<std::int64_t> entries(problem.cachestarts.size(), kNoEntry);
    for (std::int64_t b = 0; b < problem.batch_size(); ++b) {
        std::int64_t row = problem.kvstarts[u(b)];
        if (mode != KVJIT_TOKEN_TABLE && !problem.rowstarts.empty()) row = problem.rowstarts[u(b)];
        if (mode != KVJIT_TOKEN_TABLE && problem.rowstarts.empty())
            row = (problem.row_index.empty() ? b : problem.row_index[u(b)]) * problem.table_columns;
        for (std::int64_t t = first_in_sight(problem, b) / page * page; t < problem.kv_tokens(b); t += page)
            entries[u(row + t / page)] = problem.cachestarts[u(row + t / page)];
    }
    return entries;
}

}  // namespace kvjit::test

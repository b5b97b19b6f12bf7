#include "relayout/runs.h"

#include <algorithm>
#include <utility>

#include "check/arithmetic.h"
#include "common/batch_rules.h"

namespace kvjit::rt {
namespace {

/// Where a token lies on one side.
struct Place {
    std::int64_t page;   // entry of its sequence's row
    std::int64_t token;  // in that page
    std::int64_t rest;   // tokens that are copied from it on to the page's end
};

Place place_of(const RelayoutSideView& side, std::int64_t position) {
    const std::int64_t page = side.batch.cache.paging().page;
    if (page == 0) return {0, position, kMaxInt64};
    return {position / page, position % page, ceil_div(page - position % page, side.ranks)};
}

std::int64_t entry_at(const void* entries, bool narrow, std::int64_t at) {
    return narrow ? static_cast<const std::int32_t*>(entries)[at] : static_cast<const std::int64_t*>(entries)[at];
}

/// The tables of a side.
class Tables {
public:
    explicit Tables(const RelayoutSideView& side)
        : cache_(side.batch.cache), narrow_(side.batch.spec.index_type == KVJIT_I32) {}

    std::int64_t layers() const { return cache_.has_layers() ? cache_.num_layers() : 1; }
    bool has_scales() const { return cache_.table(0).scales != nullptr; }
    std::int64_t code(std::int64_t layer, std::int64_t b, std::int64_t page) const {
        const abi::Table table = cache_.table(layer);
        return entry_at(table.entries, narrow_, row_begin(table, b) + page);
    }
    std::int64_t scale(std::int64_t layer, std::int64_t b, std::int64_t page) const {
        const abi::Table table = cache_.table(layer);
        return entry_at(table.scales, narrow_, row_begin(table, b) + page);
    }

private:
    const CacheView& cache_;
    bool narrow_;
};

/// `count` tokens of sequence b from one place on.
struct Piece {
    std::int64_t sequence;
    Place from, to;
    std::int64_t count;
};

/// Calls f(Piece) for all that is copied.
template <class F>
void for_each_piece(const RelayoutView& view, std::int64_t most, const F& f) {
    for (std::int64_t b = 0; b < view.from.batch.batch_size; ++b) {
        const RelayoutSideView::Tokens from = view.from.tokens(b), to = view.to.tokens(b);
        for (std::int64_t i = 0; i < from.count;) {
            const Place at = place_of(view.from, from.first + i * view.from.ranks);
            const Place there = place_of(view.to, to.first + i * view.to.ranks);
            const std::int64_t count = std::min({from.count - i, at.rest, there.rest, most});
            f(Piece{b, at, there, count});
            i += count;
        }
    }
}

/// Of one side of a piece.
using PlaceOf = Place Piece::*;

RunEntries entries_of(const RelayoutView& view, const RelayoutSideView& side, PlaceOf place, std::int64_t most) {
    const Tables tables(side);
    RunEntries entries;
    entries.layers = tables.layers();
    for (std::int64_t layer = 0; layer < tables.layers(); ++layer) {
        for_each_piece(view, most, [&](const Piece& piece) {
            const std::int64_t page = (piece.*place).page;
            entries.codes.push_back(tables.code(layer, piece.sequence, page));
            if (tables.has_scales()) entries.scales.push_back(tables.scale(layer, piece.sequence, page));
        });
    }
    return entries;
}

/// Of tables of tokens: where a run begins in the cache, which says all of its entry.
void count_from_0(RunEntries& entries, std::vector<abi::TokenRun>& runs, std::int64_t abi::TokenRun::* token) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
        runs[i].*token += entries.codes[i];
        entries.codes[i] = 0;
    }
}

/// Joins runs that go on where the one before them ends.
void join(RelayoutRuns& all, const RelayoutView& view, std::int64_t most) {
    std::size_t last = 0;
    const auto goes_on = [&](const RunEntries& entries, std::int64_t abi::TokenRun::* token, std::int64_t ranks,
                             std::size_t i) {
        const abi::TokenRun& before = all.runs[last];
        if (!entries.scales.empty() && entries.scales[i] != entries.scales[last]) return false;
        return entries.codes[i] == entries.codes[last] && all.runs[i].*token == before.*token + before.count * ranks;
    };
    const auto keep = [](RunEntries& entries, std::size_t to, std::size_t from) {
        entries.codes[to] = entries.codes[from];
        if (!entries.scales.empty()) entries.scales[to] = entries.scales[from];
    };
    for (std::size_t i = 1; i < all.runs.size(); ++i) {
        if (all.runs[last].count + all.runs[i].count <= most &&
            goes_on(all.from, &abi::TokenRun::from_token, view.from.ranks, i) &&
            goes_on(all.to, &abi::TokenRun::to_token, view.to.ranks, i)) {
            all.runs[last].count += all.runs[i].count;
            continue;
        }
        all.runs[++last] = all.runs[i];
        keep(all.from, last, i);
        keep(all.to, last, i);
    }
    const std::size_t kept = all.runs.empty() ? 0 : last + 1;
    all.runs.resize(kept);
    for (RunEntries* entries : {&all.from, &all.to}) {
        entries->codes.resize(kept);
        if (!entries->scales.empty()) entries->scales.resize(kept);
    }
}

bool counts_tokens(const RelayoutSideView& side) {
    return !side.batch.cache.paging().blocks();
}

/// Tokens begin..end-1 behind an entry.
struct Used {
    std::int64_t entry, begin, end;
    std::int64_t sequence;
};

/// In ascending order.
std::vector<Used> used_slots(const RelayoutView& view, const RelayoutSideView& side, PlaceOf place) {
    const Tables tables(side);
    std::vector<Used> used;
    for (std::int64_t layer = 0; layer < tables.layers(); ++layer) {
        for_each_piece(view, kMaxInt64, [&](const Piece& piece) {
            const Place& at = piece.*place;
            const std::int64_t entry = tables.code(layer, piece.sequence, at.page);
            const std::int64_t begin = at.token, end = begin + (piece.count - 1) * side.ranks + 1;
            used.push_back(counts_tokens(side) ? Used{0, entry + begin, entry + end, piece.sequence}
                                               : Used{entry, begin, end, piece.sequence});
        });
    }
    std::ranges::sort(used, {}, [](const Used& slots) { return std::pair(slots.entry, slots.begin); });
    return used;
}

/// Of two addresses of blocks, apart and not the same: whether the blocks reach into each other.
bool overlap(const Used& read, std::int64_t read_bytes, const Used& written, std::int64_t written_bytes) {
    return read.entry != written.entry && read.entry < written.entry + written_bytes &&
           written.entry < read.entry + read_bytes;
}

}  // namespace

RelayoutRuns relayout_runs(const RelayoutView& view, std::int64_t most) {
    RelayoutRuns all;
    for_each_piece(view, most, [&](const Piece& piece) {
        all.runs.push_back({piece.from.token, piece.to.token, piece.count});
        all.tokens += piece.count;
    });
    all.from = entries_of(view, view.from, &Piece::from, most);
    all.to = entries_of(view, view.to, &Piece::to, most);
    if (all.has_layers()) return all;
    if (counts_tokens(view.from)) count_from_0(all.from, all.runs, &abi::TokenRun::from_token);
    if (counts_tokens(view.to)) count_from_0(all.to, all.runs, &abi::TokenRun::to_token);
    join(all, view, most);
    return all;
}

std::optional<SharedSlot> shared_slot(const RelayoutView& view) {
    if (view.from.batch.cache.paging().entries != view.to.batch.cache.paging().entries) return std::nullopt;
    const std::vector<Used> from = used_slots(view, view.from, &Piece::from);
    const std::vector<Used> to = used_slots(view, view.to, &Piece::to);
    // Slots of `to` don't overlap one another; those of `from` may, but come in the order of their begins.
    std::size_t k = 0;
    for (const Used& read : from) {
        while (k < to.size() && std::pair(to[k].entry, to[k].end) <= std::pair(read.entry, read.begin)) ++k;
        if (k < to.size() && to[k].entry == read.entry && to[k].begin < read.end)
            return SharedSlot{read.sequence, to[k].sequence, std::max(read.begin, to[k].begin), read.entry};
    }
    return std::nullopt;
}

std::optional<SharedSlot> overlapping_block(const RelayoutView& view) {
    const std::int64_t read_bytes = view.from.batch.cache.code_blocks().bytes;
    const std::int64_t written_bytes = view.to.batch.cache.code_blocks().bytes;
    if (read_bytes == 0 || written_bytes == 0) return std::nullopt;
    const std::vector<Used> from = used_slots(view, view.from, &Piece::from);
    const std::vector<Used> to = used_slots(view, view.to, &Piece::to);
    for (const Used& read : from) {
        // Blocks of `to` are apart: of those below, the last one alone may reach so far.
        auto next = std::ranges::lower_bound(to, read.entry, {}, &Used::entry);
        if (next != to.begin() && overlap(read, read_bytes, next[-1], written_bytes))
            return SharedSlot{read.sequence, next[-1].sequence, 0, next[-1].entry};
        while (next != to.end() && next->entry == read.entry) ++next;
        if (next != to.end() && overlap(read, read_bytes, *next, written_bytes))
            return SharedSlot{read.sequence, next->sequence, 0, next->entry};
    }
    return std::nullopt;
}

}  // namespace kvjit::rt

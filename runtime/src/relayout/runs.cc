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
    std::int64_t rest;   // tokens to copy from it on, to the end of the page
};

Place place_of(const RelayoutSideView& side, std::int64_t position) {
    const std::int64_t page = side.batch.cache.paging().page;
    if (page == 0) return {0, position, kMaxInt64};
    return {position / page, position % page, ceil_div(page - position % page, side.ranks)};
}

std::int64_t entry_at(const void* entries, bool narrow, std::int64_t at) {
    return narrow ? static_cast<const std::int32_t*>(entries)[at] : static_cast<const std::int64_t*>(entries)[at];
}

using EntriesOf = const void* abi::Table::*;
constexpr EntriesOf kCodes = &abi::Table::entries, kScales = &abi::Table::scales;

/// The tables of one side.
class Tables {
public:
    explicit Tables(const RelayoutSideView& side)
        : cache_(side.batch.cache), narrow_(side.batch.spec.index_type == KVJIT_I32) {}

    std::int64_t layers() const { return cache_.has_layers() ? cache_.num_layers() : 1; }
    bool has_scales() const { return cache_.table(0).scales != nullptr; }
    /// An entry for codes or for scales.
    std::int64_t entry(EntriesOf entries, std::int64_t layer, std::int64_t b, std::int64_t page) const {
        const abi::Table table = cache_.table(layer);
        return entry_at(table.*entries, narrow_, row_begin(table, b) + page);
    }

private:
    const CacheView& cache_;
    bool narrow_;
};

/// `count` tokens of sequence b, from one place on each side.
struct Piece {
    std::int64_t sequence;
    Place from, to;
    std::int64_t count;
};

/// Calls f(Piece) for all tokens to copy.
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

/// One side of a piece.
using PlaceOf = Place Piece::*;

RunEntries entries_of(const RelayoutView& view, const RelayoutSideView& side, PlaceOf place, std::int64_t most) {
    const Tables tables(side);
    RunEntries entries;
    entries.layers = tables.layers();
    for (std::int64_t layer = 0; layer < tables.layers(); ++layer) {
        for_each_piece(view, most, [&](const Piece& piece) {
            const std::int64_t page = (piece.*place).page;
            entries.codes.push_back(tables.entry(kCodes, layer, piece.sequence, page));
            if (tables.has_scales()) entries.scales.push_back(tables.entry(kScales, layer, piece.sequence, page));
        });
    }
    return entries;
}

bool counts_tokens(const RelayoutSideView& side) {
    return !side.batch.cache.paging().blocks();
}

/// One side of the runs.
struct RunSide {
    RunEntries& entries;
    std::int64_t abi::TokenRun::* token;
    std::int64_t ranks;
    bool tokens;  // entries are tokens: a run continues in any entry that has the next one

    /// Whether `next` continues `last`, of run `before`, in all layers.
    bool goes_on(std::size_t last, const abi::TokenRun& before, std::size_t next, const abi::TokenRun& run,
                 std::size_t runs) const {
        const std::int64_t way = run.*token - before.*token - before.count * ranks;
        if (!tokens && way != 0) return false;
        for (std::size_t layer = 0; layer < static_cast<std::size_t>(entries.layers); ++layer) {
            const std::size_t first = layer * runs;
            if (entries.codes[first + next] + (tokens ? way : 0) != entries.codes[first + last]) return false;
            if (!entries.scales.empty() && entries.scales[first + next] != entries.scales[first + last]) return false;
        }
        return true;
    }
    /// Keeps, for each layer, the entries of the runs in `kept`.
    void keep(const std::vector<std::size_t>& kept, std::size_t runs) {
        for (std::vector<std::int64_t>* list : {&entries.codes, &entries.scales}) {
            if (list->empty()) continue;
            std::vector<std::int64_t> fewer;
            fewer.reserve(kept.size() * static_cast<std::size_t>(entries.layers));
            for (std::size_t layer = 0; layer < static_cast<std::size_t>(entries.layers); ++layer) {
                for (const std::size_t run : kept) fewer.push_back((*list)[layer * runs + run]);
            }
            *list = std::move(fewer);
        }
    }
};

/// Joins runs that continue the one before them.
void join(RelayoutRuns& all, const RelayoutView& view, std::int64_t most) {
    RunSide from{all.from, &abi::TokenRun::from_token, view.from.ranks, counts_tokens(view.from)};
    RunSide to{all.to, &abi::TokenRun::to_token, view.to.ranks, counts_tokens(view.to)};
    const std::size_t count = all.runs.size();
    std::vector<std::size_t> kept;
    std::vector<abi::TokenRun> runs;
    for (std::size_t i = 0; i < count; ++i) {
        const abi::TokenRun& run = all.runs[i];
        if (!runs.empty() && runs.back().count + run.count <= most &&
            from.goes_on(kept.back(), runs.back(), i, run, count) &&
            to.goes_on(kept.back(), runs.back(), i, run, count)) {
            runs.back().count += run.count;
            continue;
        }
        kept.push_back(i);
        runs.push_back(run);
    }
    runs.shrink_to_fit();
    all.runs = std::move(runs);
    from.keep(kept, count);
    to.keep(kept, count);
}

/// Tokens in an entry: begin, and every ranks-th one after it, before end.
struct Used {
    std::int64_t entry, begin, end;
    std::int64_t sequence;
};

/// Layers of tables. Where one table serves all layers, it is the only one.
struct LayerRange {
    std::int64_t begin, end;
};
constexpr LayerRange kAllLayers = {0, kMaxInt64};

/// The slots that both sides use, of codes or of scales.
class UsedSlots {
public:
    UsedSlots(const RelayoutView& view, EntriesOf entries, const LayerRange& layers)
        : UsedSlots(view, entries, entries, layers) {}
    UsedSlots(const RelayoutView& view, EntriesOf from, EntriesOf to, const LayerRange& layers)
        : view_(view), from_(used(view.from, &Piece::from, from, layers)), to_(used(view.to, &Piece::to, to, layers)) {}

    std::optional<SharedSlot> shared() const {
        // Ranges that end before one begins are finished: both lists are sorted by begin.
        auto first = to_.begin();
        for (const Used& read : from_) {
            while (first != to_.end() && std::pair(first->entry, first->end) <= std::pair(read.entry, read.begin))
                ++first;
            for (auto written = first; written != to_.end() && written->entry == read.entry; ++written) {
                if (written->begin >= read.end) break;
                if (const auto token = common_token(read, *written))
                    return SharedSlot{read.sequence, written->sequence, *token, read.entry};
            }
        }
        return std::nullopt;
    }

    std::optional<SharedSlot> overlapping(std::int64_t read_bytes, std::int64_t written_bytes, bool one_cache) const {
        for (const Used& read : from_) {
            // Blocks of `to` don't overlap: of those below the address, only the last one may reach it.
            const auto next = std::ranges::lower_bound(to_, read.entry, {}, &Used::entry);
            const auto other = one_cache ? std::ranges::upper_bound(to_, read.entry, {}, &Used::entry) : next;
            if (next != to_.begin() && way(next[-1].entry, read.entry) < written_bytes) return pair_of(read, next[-1]);
            if (other != to_.end() && way(read.entry, other->entry) < read_bytes) return pair_of(read, *other);
        }
        return std::nullopt;
    }

    std::optional<SharedSlot> written_twice() const {
        for (std::size_t i = 1; i < to_.size(); ++i) {
            const Used &before = to_[i - 1], &slots = to_[i];
            if (slots.entry == before.entry && slots.begin < before.end)
                return SharedSlot{before.sequence, slots.sequence, slots.begin, slots.entry};
        }
        return std::nullopt;
    }

private:
    /// Sorted.
    std::vector<Used> used(const RelayoutSideView& side, PlaceOf place, EntriesOf entries,
                           const LayerRange& layers) const {
        const Tables tables(side);
        const LayerRange range = tables.layers() == 1 ? LayerRange{0, 1} : layers;
        std::vector<Used> all;
        for (std::int64_t layer = range.begin; layer < std::min(range.end, tables.layers()); ++layer) {
            for_each_piece(view_, kMaxInt64, [&](const Piece& piece) {
                const Place& at = piece.*place;
                const std::int64_t entry = tables.entry(entries, layer, piece.sequence, at.page);
                const std::int64_t begin = at.token, end = begin + (piece.count - 1) * side.ranks + 1;
                all.push_back(counts_tokens(side) ? Used{0, entry + begin, entry + end, piece.sequence}
                                                  : Used{entry, begin, end, piece.sequence});
            });
        }
        std::ranges::sort(all, {}, [](const Used& slots) { return std::pair(slots.entry, slots.begin); });
        return all;
    }

    /// The first common token, if any: a side with ranks skips the tokens of other ranks.
    std::optional<std::int64_t> common_token(const Used& read, const Used& written) const {
        const std::int64_t step = view_.from.ranks, begin = std::max(read.begin, written.begin);
        std::int64_t token = read.begin + ceil_div(begin - read.begin, step) * step;
        for (; token < std::min(read.end, written.end); token += step) {
            if ((token - written.begin) % view_.to.ranks == 0) return token;
        }
        return std::nullopt;
    }

    /// Bytes from one address to another; the largest number if that overflows.
    static std::int64_t way(std::int64_t begin, std::int64_t end) {
        std::int64_t bytes = 0;
        return __builtin_sub_overflow(end, begin, &bytes) ? kMaxInt64 : bytes;
    }

    static SharedSlot pair_of(const Used& read, const Used& written) {
        return {read.sequence, written.sequence, 0, written.entry};
    }

    const RelayoutView& view_;
    std::vector<Used> from_, to_;
};

/// Also looks at scales at addresses of their own.
std::optional<SharedSlot> shared_in(const RelayoutView& view, const LayerRange& layers) {
    const std::optional<SharedSlot> codes = UsedSlots(view, kCodes, layers).shared();
    const bool scales = Tables(view.from).has_scales() && Tables(view.to).has_scales();
    return codes || !scales ? codes : UsedSlots(view, kScales, layers).shared();
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
    join(all, view, most);
    return all;
}

std::vector<std::optional<SharedSlot>> shared_slots(const RelayoutView& view) {
    const CacheView &from = view.from.batch.cache, &to = view.to.batch.cache;
    if (from.paging().entries != to.paging().entries) return {std::nullopt};
    const bool lie_apart = gen::layout_axes(view.from.batch.spec).contains('L');
    if (!lie_apart || (!from.has_layers() && !to.has_layers())) return {shared_in(view, kAllLayers)};
    const std::int64_t layers = std::min(from.num_layers(), to.num_layers());
    std::vector<std::optional<SharedSlot>> shared;
    for (std::int64_t layer = 0; layer < layers; ++layer) shared.push_back(shared_in(view, {layer, layer + 1}));
    return shared;
}

std::optional<SharedSlot> slot_of_two_layers(const RelayoutView& view) {
    if (!view.to.batch.cache.has_layers() || gen::layout_axes(view.to.batch.spec).contains('L')) return std::nullopt;
    return UsedSlots(view, kCodes, kAllLayers).written_twice();
}

std::optional<SharedSlot> overlapping_block(const RelayoutView& view, bool one_cache) {
    const CacheView &from = view.from.batch.cache, &to = view.to.batch.cache;
    // What is written may overlap anything that is read, also scales codes.
    struct Blocks {
        EntriesOf entries;
        std::int64_t bytes;
    };
    for (const Blocks& read : {Blocks{kCodes, from.code_blocks().bytes}, Blocks{kScales, from.scale_blocks().bytes}}) {
        for (const Blocks& written :
             {Blocks{kCodes, to.code_blocks().bytes}, Blocks{kScales, to.scale_blocks().bytes}}) {
            if (read.bytes == 0 || written.bytes == 0) continue;
            const UsedSlots slots(view, read.entries, written.entries, kAllLayers);
            const bool alike = one_cache && read.entries == written.entries;
            if (const auto found = slots.overlapping(read.bytes, written.bytes, alike)) return found;
        }
    }
    return std::nullopt;
}

}  // namespace kvjit::rt

#include "record/slots.h"

#include <algorithm>

#include "batch/batch_view.h"

namespace kvjit::rt {
namespace {

constexpr std::int64_t kNone = -1;

std::size_t u(std::int64_t i) {
    return static_cast<std::size_t>(i);
}

/// Places that are used, as disjoint ranges in ascending order; a range's places keep their distances.
class Places {
public:
    void use(std::int64_t first, std::int64_t count) {
        if (count > 0) ranges_.push_back({first, first + count, 0});
    }
    /// Call after the last use.
    void number() {
        std::ranges::sort(ranges_, {}, &Range::begin);
        std::vector<Range> joined;
        for (const Range& range : ranges_) {
            if (joined.empty() || range.begin > joined.back().end) joined.push_back(range);
            joined.back().end = std::max(joined.back().end, range.end);
        }
        for (Range& range : joined) {
            range.number = count_;
            count_ += range.end - range.begin;
        }
        ranges_ = std::move(joined);
    }
    std::int64_t count() const { return count_; }
    std::int64_t number_of(std::int64_t place) const {
        const auto after = std::ranges::upper_bound(ranges_, place, {}, &Range::begin);
        const Range& range = *std::prev(after);
        return range.number + place - range.begin;
    }
    /// In the order of their numbers.
    std::vector<std::int64_t> all() const {
        std::vector<std::int64_t> places;
        places.reserve(u(count_));
        for (const Range& range : ranges_) {
            for (std::int64_t place = range.begin; place < range.end; ++place) places.push_back(place);
        }
        return places;
    }

private:
    struct Range {
        std::int64_t begin, end, number;
    };
    std::vector<Range> ranges_;
    std::int64_t count_ = 0;
};

/// An entry of the table that some key needs.
struct UsedEntry {
    std::int64_t at;      // in the table
    std::int64_t tokens;  // that keys need of those it stands for
};

std::vector<UsedEntry> entries_of_keys(const BatchView& view) {
    const std::int64_t page = view.cache.paging().page;
    std::vector<UsedEntry> used;
    for (std::int64_t b = 0; b < view.batch_size; ++b) {
        const std::int64_t keys = key_count(view.keys, b);
        const std::int64_t row = row_begin(view.cache.table(0), b);
        if (keys == 0) continue;
        if (page == 0) {
            used.push_back({row, keys});
            continue;
        }
        // Pages before the first key that a row sees may be gone.
        const std::int64_t position = std::max<std::int64_t>(keys - length(view.seqstarts, b), 0);
        const std::int64_t first = gen::attends(view.spec) ? keys_in_reach(keys, position, view.reach(b)).begin : 0;
        for (std::int64_t at = first / page; at * page < keys; ++at) {
            used.push_back({row + at, std::min(page, keys - at * page)});
        }
    }
    return used;
}

/// The places become those that are used, or the cache's own where at least half of them are.
void choose(SlotUse& use, const Places& places, std::int64_t in_cache) {
    use.renumbered = in_cache / 2 > places.count();
    use.places = places.all();
    if (use.places.empty()) use.places = {kNone};  // a cache has at least one
    if (use.renumbered) return;
    in_cache = std::max<std::int64_t>(in_cache, 1);
    std::vector<std::int64_t> kept(u(in_cache), kNone);
    for (const std::int64_t place : places.all()) kept[u(place)] = place;
    use.places = std::move(kept);
}

std::vector<std::int64_t> renumbered(const std::vector<UsedEntry>& used, const std::vector<std::int64_t>& entries,
                                     const Places& places) {
    std::vector<std::int64_t> to(entries.size(), kNone);
    for (const UsedEntry& entry : used) to[u(entry.at)] = places.number_of(entries[u(entry.at)]);
    return to;
}

/// Blocks at addresses always get numbers, as there are none to keep.
SlotUse find_blocks_at_addresses(const HostBatch& host, const std::vector<UsedEntry>& used) {
    SlotUse use;
    use.renumbered = true;
    const auto number = [&](std::string_view table, std::vector<std::int64_t>& places) {
        std::vector<std::int64_t> entries = host.entries(table);
        if (entries.empty()) return entries;
        std::vector<std::int64_t> addresses;
        for (const UsedEntry& entry : used) addresses.push_back(entries[u(entry.at)]);
        std::ranges::sort(addresses);
        addresses.erase(std::ranges::unique(addresses).begin(), addresses.end());
        std::vector<std::int64_t> to(entries.size(), kNone);
        for (const UsedEntry& entry : used) {
            to[u(entry.at)] = std::ranges::lower_bound(addresses, entries[u(entry.at)]) - addresses.begin();
        }
        places = std::move(addresses);
        return to;
    };
    use.entries = number("cachestarts", use.places);
    use.scale_entries = number("scalestarts", use.scales);
    return use;
}

}  // namespace

SlotUse find_slots(const HostBatch& host, bool stores) {
    const BatchView view = batch_view(host.spec(), host.batch(), stores);
    const std::vector<UsedEntry> used = host.batch().batch_size == 0 ? std::vector<UsedEntry>() : entries_of_keys(view);
    if (view.cache.paging().entries == Entries::kAddresses) return find_blocks_at_addresses(host, used);
    const bool blocks = view.cache.paging().blocks();
    SlotUse use;
    use.entries = host.entries("cachestarts");
    if (stores) use.store_slots = host.entries("store_slots");
    if (!use.store_slots.empty()) use.store_slots.resize(u(query_rows(host.spec(), host.batch())));
    const std::int64_t block_tokens = view.cache.block_tokens();
    const bool whole = host.spec().cache_mode == KVJIT_SEQUENCE_TABLE;  // a block has all of a sequence
    Places places;
    for (const UsedEntry& entry : used) {
        places.use(use.entries[u(entry.at)], blocks ? 1 : entry.tokens);
        if (whole) use.block_tokens = std::max(use.block_tokens, entry.tokens);
    }
    for (const std::int64_t slot : use.store_slots) {
        if (slot < 0) continue;
        places.use(blocks ? slot / block_tokens : slot, 1);
        if (whole) use.block_tokens = std::max(use.block_tokens, slot % block_tokens + 1);
    }
    places.number();
    choose(use, places, view.cache.num_slots());
    if (use.renumbered) use.entries = renumbered(used, use.entries, places);
    const std::int64_t new_tokens = whole ? use.block_tokens : block_tokens;
    for (std::int64_t& slot : use.store_slots) {
        if (slot < 0) continue;
        const std::int64_t place = blocks ? slot / block_tokens : slot;
        const std::int64_t number = use.renumbered ? places.number_of(place) : place;
        slot = blocks ? number * new_tokens + slot % block_tokens : number;
    }
    return use;
}

}  // namespace kvjit::rt

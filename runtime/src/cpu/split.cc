#include "cpu/split.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <span>

#include "check/arithmetic.h"
#include "cpu/stage.h"
#include "generator/operator.h"
#include "generator/program.h"

namespace kvjit::rt {
namespace {

/// Query rows of a prefill item: enough to spread the cost of packing a key block.
constexpr std::int64_t kPrefillRows = 256;
/// Query rows whose arithmetic takes as long as their keys and values take from memory: fewer cost a decode item no
/// less.
constexpr std::int64_t kRowsPerRead = 10;
/// Most chunks of a decode item that takes several kv heads in turn. An item waits for its first rows to come from
/// memory, but those of the second head on are prefetched.
constexpr std::int64_t kChunksInTurn = 8;
/// Such items are so small that a stage of nothing else would have this many times the items that it needs: a thread
/// that finds none left doesn't wait long for the others.
constexpr std::int64_t kSpareItems = 4;
/// Limit of the workspace for a plan's partials: 64 MiB. A tile that would need more stays whole; it has rows to share.
constexpr std::int64_t kMaxPartialFloats = 16 * 1024 * 1024;
/// Elements that a store or load item moves.
constexpr std::int64_t kTokenItemElements = 64 * 1024;
/// A stage has items for each sequence, and a small multiple of this number more. A plan splits before it sees a
/// tensor, so memory must suffice for wrong lengths, too: where there would be more items, all become larger.
constexpr std::int64_t kMaxItems = 32 * 1024;

std::int64_t rows_of(const abi::Indices& starts, std::int64_t b) {
    return bounded(length(starts, b));
}

/// The extent of a path's tiles: query rows, and kv heads, more of them while they have at most chunks_in_turn chunks
/// together.
struct TileSize {
    std::int64_t rows;
    std::int64_t heads, chunks_in_turn;
};

/// A range of query rows and kv heads of one sequence, with the chunks that some of its rows can see.
struct Tile {
    std::int64_t sequence;
    std::int64_t row_begin, row_end;
    std::int64_t head_begin, head_end;
    std::int64_t chunk_begin, chunk_end;
    std::int64_t cost;  // proportional to the time that the tile takes, at least 1
    bool decode;

    std::int64_t chunks() const { return chunk_end - chunk_begin; }
    std::int64_t heads() const { return head_end - head_begin; }
};

/// Costs are told apart in so many steps up to the largest: enough to spread work evenly, and sorting takes no
/// comparison, which for lengths that are drawn would be guessed wrong every other time.
constexpr std::int64_t kCostLevels = 256;

/// The tiles by descending level of cost, those of one level as they were.
std::vector<Tile> by_cost(std::vector<Tile> tiles) {
    if (tiles.size() < 2) return tiles;
    std::int64_t most = 1;
    for (const Tile& tile : tiles) most = std::max(most, tile.cost);
    const std::int64_t step = most / kCostLevels + 1;
    const auto level = [&](const Tile& tile) { return static_cast<std::size_t>((most - tile.cost) / step); };
    std::array<std::size_t, kCostLevels + 1> place{};
    for (const Tile& tile : tiles) ++place[level(tile) + 1];
    std::partial_sum(place.begin(), place.end(), place.begin());
    std::vector<Tile> sorted(tiles.size());
    for (const Tile& tile : tiles) sorted[place[level(tile)]++] = tile;
    return sorted;
}

class AttendSplitter {
public:
    AttendSplitter(const BatchView& batch, const SplitFor& use)
        : spec_(batch.spec),
          batch_(batch),
          num_kv_heads_(batch.num_kv_heads),
          decode_tokens_(use.decode_tokens),
          target_items_(std::min(use.concurrency * kItemsPerThread, kMaxItems)) {}

    void split(Work& work) {
        const std::vector<Tile> tiles = by_cost(first_tiles());
        std::int64_t total = 0, decode = 0, prefill = 0;
        for (const Tile& tile : tiles) {
            const std::int64_t alike = ceil_div(num_kv_heads_, tile.heads());
            total = saturating_sum(total, saturating_product(alike, tile.cost));
            (tile.decode ? decode : prefill) += alike;
        }
        work.decode.reserve(static_cast<std::size_t>(decode));
        work.prefill.reserve(static_cast<std::size_t>(prefill));
        const std::int64_t item_cost = std::max<std::int64_t>(1, total / target_items_);
        for (const Tile& tile : tiles) add_tiles(tile, item_cost, work);
    }

private:
    /// For each range of rows, the tile of its first heads. The tiles of other heads are like it: a batch is sorted by
    /// its sequences, not by their heads.
    std::vector<Tile> first_tiles() const {
        std::vector<Tile> tiles;
        tiles.reserve(static_cast<std::size_t>(batch_.batch_size));
        const TileSize decode_size = tile_size(true), prefill_size = tile_size(false);
        for (std::int64_t b = 0; b < batch_.batch_size; ++b) {
            const std::int64_t n = rows_of(batch_.seqstarts, b);
            const bool decode = decodes(b);
            const TileSize size = decode ? decode_size : prefill_size;
            for (std::int64_t row = 0; row < n; row += size.rows) {
                append_tile(tiles, b, row, std::min(row + size.rows, n), size, decode);
            }
        }
        return tiles;
    }

    bool decodes(std::int64_t b) const { return decode_tokens_.contains(rows_of(batch_.seqstarts, b)); }

    /// The finest that pays, made coarser where it gives too many tiles: first in heads, which share nothing, then in
    /// rows. Gives up to 2 * kMaxItems tiles, or one for each sequence and kMaxItems more.
    TileSize tile_size(bool decode) const {
        TileSize size{std::max<std::int64_t>(1, decode ? decode_tokens_.most() : kPrefillRows / spec_.group), 1, 0};
        std::int64_t pieces = 0;  // of rows
        for (std::int64_t b = 0; b < batch_.batch_size; ++b) {
            if (decodes(b) == decode)
                pieces = saturating_sum(pieces, ceil_div(rows_of(batch_.seqstarts, b), size.rows));
        }
        if (decode) {
            const std::int64_t chunks = decode_chunks(), all = saturating_product(chunks, num_kv_heads_);
            size.heads = gen::is_head_inner(spec_) ? most_heads(chunks) : 1;
            size.chunks_in_turn = std::min(kChunksInTurn, all / (kSpareItems * target_items_));
        }
        const std::int64_t heads = ceil_div(saturating_product(pieces, num_kv_heads_), kMaxItems);
        size.heads = std::clamp(heads, size.heads, num_kv_heads_);
        if (pieces > kMaxItems) size.rows = saturating_product(size.rows, ceil_div(pieces, kMaxItems));
        return size;
    }

    /// Of a kv head, over all sequences that decode.
    std::int64_t decode_chunks() const {
        std::int64_t chunks = 0;
        for (std::int64_t b = 0; b < batch_.batch_size; ++b) {
            const std::int64_t n = rows_of(batch_.seqstarts, b);
            if (n != 0 && decodes(b)) chunks = saturating_sum(chunks, ceil_div(seen(b, 0, n).count(), abi::kChunk));
        }
        return chunks;
    }

    /// Kv heads of an item where a token's heads are neighbours in memory: all, if so many chunks give enough items.
    std::int64_t most_heads(std::int64_t chunks) const {
        std::int64_t heads = num_kv_heads_;
        while (heads > 1 && saturating_product(chunks, ceil_div(num_kv_heads_, heads)) < target_items_) {
            heads = ceil_div(heads, 2);
        }
        return heads;
    }

    std::int64_t keys(std::int64_t b) const { return bounded(key_count(batch_.keys, b)); }

    /// Made in place: a copy of a struct whose members have just been written waits for each of them.
    void append_tile(std::vector<Tile>& tiles, std::int64_t b, std::int64_t row_begin, std::int64_t row_end,
                     const TileSize& size, bool decode) const {
        const KeyRange keys = seen(b, row_begin, row_end);
        const std::int64_t first = keys.empty() ? 0 : keys.begin / abi::kChunk;
        const std::int64_t last = keys.empty() ? 0 : ceil_div(keys.end, abi::kChunk);
        const std::int64_t in_turn = size.chunks_in_turn / std::max<std::int64_t>(1, last - first);
        const std::int64_t heads = std::max(size.heads, std::min(num_kv_heads_, in_turn));
        const std::int64_t least = decode ? kRowsPerRead : 1;
        const std::int64_t rows = std::max(least, (row_end - row_begin) * spec_.group);
        const std::int64_t cost = std::max<std::int64_t>(1, saturating_product(rows, heads, last - first));
        tiles.emplace_back(b, row_begin, row_end, 0, heads, first, last, cost, decode);
    }

    /// Keys that some of the sequence's new tokens row_begin..row_end-1 see.
    KeyRange seen(std::int64_t b, std::int64_t row_begin, std::int64_t row_end) const {
        const std::int64_t first = keys(b) - rows_of(batch_.seqstarts, b);  // position of new token 0
        const Reach reach = batch_.reach(b);
        return seen_by_some(keys_in_reach(keys(b), first + row_begin, reach),
                            keys_in_reach(keys(b), first + row_end - 1, reach));
    }

    /// Adds `tile`, and the same tile of the other heads.
    void add_tiles(Tile tile, std::int64_t item_cost, Work& work) const {
        const std::int64_t wanted = ceil_div(tile.cost, item_cost);
        const std::int64_t pieces = std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, tile.chunks()));
        if (pieces == 1) return add_whole(tile, items_like(tile, work));
        const std::int64_t chunks_each = ceil_div(tile.chunks(), pieces), heads = tile.heads();
        for (std::int64_t head = 0; head < num_kv_heads_; head += heads) {
            tile.head_begin = head;
            tile.head_end = std::min(head + heads, num_kv_heads_);
            add_cut(tile, chunks_each, work);
        }
    }

    static std::vector<abi::AttendItem>& items_like(const Tile& tile, Work& work) {
        return tile.decode ? work.decode : work.prefill;
    }

    static abi::AttendItem whole_item(const Tile& tile) {
        return {tile.sequence, tile.row_begin,   tile.row_end,   tile.head_begin,
                tile.head_end, tile.chunk_begin, tile.chunk_end, -1};
    }

    /// Adds an item for each range of heads: copies of one, as most of a plan's time goes into items.
    void add_whole(const Tile& tile, std::vector<abi::AttendItem>& items) const {
        const std::size_t first = items.size();
        const std::int64_t heads = tile.heads();
        items.insert(items.end(), static_cast<std::size_t>(ceil_div(num_kv_heads_, heads)), whole_item(tile));
        std::int64_t head = 0;
        for (abi::AttendItem& item : std::span(items).subspan(first)) {
            item.head_begin = head;
            item.head_end = head = std::min(head + heads, num_kv_heads_);
        }
    }

    /// Divides the tile into items of chunks_each chunks, if there is room for their partials.
    void add_cut(const Tile& tile, std::int64_t chunks_each, Work& work) const {
        std::vector<abi::AttendItem>& items = items_like(tile, work);
        abi::AttendItem item = whole_item(tile);
        if (!fits(tile, work)) return items.push_back(item);
        const std::int64_t floats = chunks_each * chunk_floats(tile);
        item.partial = reserve_partials(tile, work);
        for (; item.chunk_begin < tile.chunk_end; item.chunk_begin = item.chunk_end, item.partial += floats) {
            item.chunk_end = std::min(item.chunk_begin + chunks_each, tile.chunk_end);
            items.push_back(item);
        }
    }

    /// Floats of the partials of one chunk.
    std::int64_t chunk_floats(const Tile& tile) const {
        return saturating_product(tile.row_end - tile.row_begin, tile.heads(), std::int64_t{spec_.group},
                                  spec_.head_dim + abi::kPartialTail);
    }

    std::int64_t partial_floats(const Tile& tile) const {
        return saturating_product(tile.chunks(), chunk_floats(tile));
    }

    bool fits(const Tile& tile, const Work& work) const {
        return partial_floats(tile) <= kMaxPartialFloats - work.partial_floats;
    }

    /// Reserves room for every chunk's partial of the tile, laid out as abi.h says, and adds their merge: a kv head an
    /// item where that doesn't give too many.
    std::int64_t reserve_partials(const Tile& tile, Work& work) const {
        const std::int64_t stride = spec_.head_dim + abi::kPartialTail;
        const std::int64_t query_heads = tile.heads() * spec_.group;
        const std::int64_t rows = tile.row_end - tile.row_begin;
        const std::int64_t first = work.partial_floats;
        work.partial_floats += partial_floats(tile);
        const std::int64_t token = index_at(batch_.seqstarts, tile.sequence);
        const std::int64_t step = ceil_div(saturating_product(tile.heads(), target_items_), kMaxItems);
        for (std::int64_t head = 0; head < tile.heads(); head += step) {
            const std::int64_t offset = first + head * spec_.group * stride;
            const std::int64_t query_head = (tile.head_begin + head) * spec_.group;
            work.merge.push_back({.token_begin = token + tile.row_begin,
                                  .token_end = token + tile.row_end,
                                  .head_begin = query_head,
                                  .head_end = query_head + std::min(step, tile.heads() - head) * spec_.group,
                                  .parts = tile.chunks(),
                                  .acc = offset,
                                  .acc_part = rows * query_heads * stride,
                                  .acc_token = query_heads * stride,
                                  .acc_head = stride,
                                  .stat = offset + spec_.head_dim,
                                  .stat_part = rows * query_heads * stride,
                                  .stat_token = query_heads * stride,
                                  .stat_head = stride});
        }
        return first;
    }

    const gen::KernelSpec& spec_;
    const BatchView& batch_;
    std::int64_t num_kv_heads_;
    gen::TokenCounts decode_tokens_;
    std::int64_t target_items_;
};

/// Tokens of an item of about kTokenItemElements elements; more where `tokens`, the total, gives too many items.
std::int64_t tokens_each(std::int64_t tokens, std::int64_t token_elements) {
    const std::int64_t least = ceil_div(tokens, kMaxItems);
    return std::max({std::int64_t{1}, least, kTokenItemElements / std::max<std::int64_t>(1, token_elements)});
}

/// Divides 0..count-1 of each sequence into items.
std::vector<abi::TokenItem> token_items(const BatchView& batch, const abi::Indices& starts,
                                        std::int64_t token_elements) {
    std::int64_t tokens = 0;
    for (std::int64_t b = 0; b < batch.batch_size; ++b) tokens = saturating_sum(tokens, rows_of(starts, b));
    const std::int64_t step = tokens_each(tokens, token_elements);
    std::vector<abi::TokenItem> items;
    items.reserve(static_cast<std::size_t>(batch.batch_size));
    for (std::int64_t b = 0; b < batch.batch_size; ++b) {
        const std::int64_t count = rows_of(starts, b);
        for (std::int64_t begin = 0; begin < count; begin += step) {
            items.emplace_back(b, begin, std::min(begin + step, count), 0, batch.num_kv_heads);
        }
    }
    return items;
}

/// Merge: items of output tokens; the places of their parts are known when the tensors are (bind.cc).
std::vector<abi::MergeItem> merge_items(const BatchView& batch) {
    const std::int64_t tokens = index_at(batch.seqstarts, batch.batch_size);
    const std::int64_t step = tokens_each(tokens, batch.num_heads * batch.spec.head_dim + 1);
    std::vector<abi::MergeItem> items;
    for (std::int64_t begin = 0; begin < tokens; begin += step) {
        abi::MergeItem item{};
        item.token_begin = begin;
        item.token_end = std::min(begin + step, tokens);
        item.head_end = batch.num_heads;
        items.push_back(item);
    }
    return items;
}

}  // namespace

gen::TokenCounts tokens_in(const BatchView& batch) {
    gen::TokenCounts found;
    if (!gen::has_keys(batch.spec) || gen::loads(batch.spec)) return found;
    for (std::int64_t b = 0; b < batch.batch_size; ++b) {
        const std::int64_t tokens = rows_of(batch.seqstarts, b);
        if (tokens >= 1 && tokens <= gen::TokenCounts::kMost) found.add(static_cast<int>(tokens));
    }
    return found;
}

Work split(const BatchView& batch, const SplitFor& use) {
    Work work;
    if (batch.batch_size == 0) return work;
    if (!gen::has_keys(batch.spec)) {
        work.merge = merge_items(batch);
        return work;
    }
    const std::int64_t token_elements = saturating_product(batch.num_kv_heads, std::int64_t{batch.spec.head_dim});
    if (batch.stores) work.store = token_items(batch, batch.seqstarts, token_elements);
    if (gen::loads(batch.spec)) {
        if (!is_given(batch.keys.starts)) return work;  // a sequence's rows in the loaded tensors have no known begin
        work.load = token_items(batch, batch.keys.starts, saturating_product(token_elements, batch.num_repeat));
    } else {
        AttendSplitter(batch, use).split(work);
    }
    return work;
}

}  // namespace kvjit::rt

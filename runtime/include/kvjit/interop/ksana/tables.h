// Tables of blocks, each made of another. Part of kvjit/interop/ksana.h.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "kvjit/interop/ksana/pool.h"

namespace kvjit::interop {

/// A table with a row for each sequence, int32 or int64 entries; `Entry` may be const. Entries that are kNoEntry stand
/// after a row's end.
template <class Entry>
struct KsanaTable {
    Entry* entries = nullptr;
    std::int64_t rows = 0, columns = 0;
    std::int64_t stride = 0;  ///< entries from a row to the next, at least `columns`

    KsanaTable(Entry* first, std::int64_t row_count, std::int64_t column_count)
        : KsanaTable(first, row_count, column_count, column_count) {}
    KsanaTable(Entry* first, std::int64_t row_count, std::int64_t column_count, std::int64_t row_stride)
        : entries(first), rows(row_count), columns(column_count), stride(row_stride) {}
    Entry& at(std::int64_t row, std::int64_t column) const { return entries[row * stride + column]; }
};

/// Of ids and of addresses alike.
inline constexpr std::int64_t kNoEntry = -1;

namespace detail {

/// Of an entry of a table, in the row of a sequence.
inline Error ksana_refusal(const char* name, std::int64_t row, std::int64_t column, std::int64_t entry,
                           std::int64_t limit, const std::string& says) {
    const std::string place = std::string(name) + "[" + std::to_string(row) + ", " + std::to_string(column) + "]";
    const std::string message =
        place + " is " + std::to_string(entry) + "; " + says + " (sequence " + std::to_string(row) + ")";
    Error error(KVJIT_BAD_INDEX, name, message.c_str(), entry, limit);
    error.get()->sequence = row;
    return error;
}

template <class From, class To>
Result<void> check_ksana_tables(const char* name, const KsanaTable<From>& from, const KsanaTable<To>& to) {
    const bool empty = from.rows == 0 || from.columns == 0;
    if (from.rows < 0 || from.columns < 0 || from.stride < from.columns || (from.entries == nullptr && !empty))
        return refusal(KVJIT_BAD_ARGUMENT, name, from.stride, from.columns,
                       "the stride of its rows; a table has rows and columns, a stride of at least its columns, "
                       "and entries that are not null");
    if (to.rows != from.rows || to.columns != from.columns || to.stride < to.columns ||
        (to.entries == nullptr && !empty))
        return refusal(KVJIT_BAD_SHAPE, "to", to.rows, from.rows,
                       "its rows; it takes the rows and columns of the table that it is made from, a stride of at "
                       "least its columns, and entries that are not null");
    return {};
}

/// Makes each entry what `map` says; kNoEntry stays. Nothing is written where one is refused. Both may be one table.
template <class From, class To, class Map>
Result<void> convert_ksana_table(const char* name, const KsanaTable<From>& from, const KsanaTable<To>& to,
                                 const Map& map) {
    if (Result<void> tables = check_ksana_tables(name, from, to); !tables) return tables;
    constexpr std::int64_t kMost = std::numeric_limits<To>::max();
    for (std::int64_t row = 0; row < from.rows; ++row) {
        for (std::int64_t column = 0; column < from.columns; ++column) {
            const std::int64_t entry = from.at(row, column);
            if (entry == kNoEntry) continue;
            if (!map.allows(entry)) return ksana_refusal(name, row, column, entry, map.limit(), map.rule());
            if (map(entry) <= kMost) continue;
            return ksana_refusal(name, row, column, entry, kMost,
                                 "it becomes " + std::to_string(map(entry)) + ", and the other table's type holds " +
                                     std::to_string(kMost) + " at most");
        }
    }
    for (std::int64_t row = 0; row < from.rows; ++row) {
        for (std::int64_t column = 0; column < from.columns; ++column) {
            const std::int64_t entry = from.at(row, column);
            to.at(row, column) = static_cast<To>(entry == kNoEntry ? kNoEntry : map(entry));
        }
    }
    return {};
}

struct ToAtb {
    std::int64_t num_blocks, pieces, layer;  // pieces of a block: 2L

    bool allows(std::int64_t block) const { return block >= 0 && block < num_blocks; }
    std::int64_t operator()(std::int64_t block) const { return block * pieces + layer; }
    std::int64_t limit() const { return num_blocks; }
    std::string rule() const {
        return "it takes numbers of blocks, below " + std::to_string(num_blocks) +
               ", whose ATB id the other table's type holds, or -1";
    }
};

struct FromAtb {
    std::int64_t num_blocks, pieces, layer;

    bool allows(std::int64_t id) const { return id >= 0 && id / pieces < num_blocks && id % pieces == layer; }
    std::int64_t operator()(std::int64_t id) const { return id / pieces; }
    std::int64_t limit() const { return num_blocks * pieces; }
    std::string rule() const {
        return "it takes ATB ids of layer " + std::to_string(layer) + ", b * " + std::to_string(pieces) + " + " +
               std::to_string(layer) + " below " + std::to_string(limit()) + ", or -1";
    }
};

struct ToPointers {
    std::int64_t num_blocks, base, block_bytes;

    bool allows(std::int64_t block) const { return block >= 0 && block < num_blocks; }
    std::int64_t operator()(std::int64_t block) const { return base + block * block_bytes; }
    std::int64_t limit() const { return num_blocks; }
    std::string rule() const { return "it takes numbers of blocks, below " + std::to_string(num_blocks) + ", or -1"; }
};

struct FromPointers {
    std::int64_t num_blocks, base, block_bytes;

    bool allows(std::int64_t address) const {
        const std::int64_t bytes = address >= base ? address - base : -1;
        return bytes >= 0 && bytes % block_bytes == 0 && bytes / block_bytes < num_blocks;
    }
    std::int64_t operator()(std::int64_t address) const { return (address - base) / block_bytes; }
    std::int64_t limit() const { return block_bytes; }
    std::string rule() const {
        return "it takes addresses of the pool's " + std::to_string(num_blocks) + " blocks, " +
               std::to_string(block_bytes) + " bytes apart, or -1";
    }
};

}  // namespace detail

// Each makes a table of another, entry by entry, into the caller's memory; both may be one. Nothing is allocated unless
// there is an error, and then nothing is written. Errors: KVJIT_BAD_INDEX, with the entry and its row as the sequence,
// of one that the pool doesn't have or the other table's type doesn't hold; KVJIT_BAD_ARGUMENT: a layer that the pool
// doesn't have, a table of null; KVJIT_BAD_SHAPE: tables of other extents. Thread-safe.

namespace detail {

inline Result<void> check_ksana_layer(const KsanaPool& pool, std::int64_t layer) {
    if (layer >= 0 && layer < pool.num_layers()) return {};
    return refusal(KVJIT_BAD_ARGUMENT, "layer", layer, pool.num_layers(),
                   "the pool has layers 0 to num_layers - 1, num_layers is " + std::to_string(pool.num_layers()));
}

}  // namespace detail

/// Numbers of blocks to ATB's ids for one layer: b*2L + layer.
template <class From, class To>
Result<void> to_atb(const KsanaPool& pool, const KsanaTable<From>& blocks, std::int64_t layer,
                    const KsanaTable<To>& atb) {
    if (Result<void> inside = detail::check_ksana_layer(pool, layer); !inside) return inside;
    return detail::convert_ksana_table("blocks", blocks, atb,
                                       detail::ToAtb{pool.num_blocks(), pool.block_pieces(), layer});
}

/// ATB's ids of one layer to numbers of blocks.
template <class From, class To>
Result<void> from_atb(const KsanaPool& pool, const KsanaTable<From>& atb, std::int64_t layer,
                      const KsanaTable<To>& blocks) {
    if (Result<void> inside = detail::check_ksana_layer(pool, layer); !inside) return inside;
    return detail::convert_ksana_table("atb", atb, blocks,
                                       detail::FromAtb{pool.num_blocks(), pool.block_pieces(), layer});
}

/// Numbers of blocks to their addresses, as `cachestarts` of kPointers takes them.
template <class From>
Result<void> to_pointers(const KsanaPool& pool, const KsanaTable<From>& blocks,
                         const KsanaTable<std::int64_t>& addresses) {
    const auto base = reinterpret_cast<std::intptr_t>(pool.codes());
    return detail::convert_ksana_table("blocks", blocks, addresses,
                                       detail::ToPointers{pool.num_blocks(), base, pool.block_bytes()});
}

/// The same for their scales, `scalestarts`. Precondition: the pool has some.
template <class From>
Result<void> to_scale_pointers(const KsanaPool& pool, const KsanaTable<From>& blocks,
                               const KsanaTable<std::int64_t>& addresses) {
    const auto base = reinterpret_cast<std::intptr_t>(pool.scales());
    return detail::convert_ksana_table("blocks", blocks, addresses,
                                       detail::ToPointers{pool.num_blocks(), base, pool.scale_block_bytes()});
}

/// Addresses of blocks to their numbers.
template <class From, class To>
Result<void> from_pointers(const KsanaPool& pool, const KsanaTable<From>& addresses, const KsanaTable<To>& blocks) {
    const auto base = reinterpret_cast<std::intptr_t>(pool.codes());
    return detail::convert_ksana_table("addresses", addresses, blocks,
                                       detail::FromPointers{pool.num_blocks(), base, pool.block_bytes()});
}

}  // namespace kvjit::interop

// Blocks of keys and values that prefill packs, and decode by AMX, with the addresses of their rows, and how the next
// block's rows are fetched while the present one is multiplied. kBlockKeys, a block's keys, is defined before this file
// is included.
#pragma once

#include "cpu/attend/panel.h"

namespace kvjit {

/// A block with the addresses of its keys and values.
struct ListedBlock : Block {
    RowList<kBlockKeys> key_rows, value_rows;
};

KVJIT_NOINLINE void list_block(const Panel& panel, ListedBlock& listed, const Block& block) {
    const abi::Cache& cache = panel.args.cache;
    const TableRow table = table_row(panel.args.table, panel.item.sequence);
    const auto [first, count] = KeyRange{block.keys.begin, block.keys.count()};
    listed.begin = block.begin;
    listed.keys = block.keys;
    if (block.keys.empty()) return;
    list_rows(listed.key_rows, first, table, {cache.key, cache.key_scale, block.begin + first, count});
    list_rows(listed.value_rows, first, table, {cache.value, cache.value_scale, block.begin + first, count});
}

/// Rows of one kv head that are needed next.
struct RowsAhead {
    const RowList<kBlockKeys>& rows;
    i64 head;
    KeyRange keys;

    /// Fetches the rows of keys first..first+count-1.
    KVJIT_INLINE void fetch_rows(i64 first, i64 count) const {
        const i64 end = smaller(first + count, keys.end);
#pragma clang loop unroll(disable)
        for (i64 k = larger(first, keys.begin); k < end; ++k) prefetch_row(rows, k, head);
    }
};

/// The block that is packed next, of which a turn fetches `fetched`.
struct BlockAhead {
    const ListedBlock& block;
    i64 head;
    KeyRange fetched;

    RowsAhead keys() const { return {block.key_rows, head, fetched}; }
    RowsAhead values() const { return {block.value_rows, head, fetched}; }
    BlockAhead without_fetch() const { return {block, head, {}}; }
};

/// The present block and the next one.
struct alignas(64) ListedBlocks {
    ListedBlock of_parity[2];  // of even numbers and of odd ones

    ListedBlock& at(i64 begin) { return of_parity[begin / kBlockKeys % 2]; }
};

/// Lists the block after the one at `begin`, of `seen`, what the panel sees of the item's keys. The one at `begin` is
/// listed already, unless it is the panel's first. After the panel's last block comes the next panel's first one, as if
/// that saw the same keys: with others, other rows are fetched, which is only slower.
KVJIT_NOINLINE BlockAhead list_ahead(const Panel& panel, ListedBlocks& blocks, i64 begin, KeyRange seen) {
    if (begin <= seen.begin) list_block(panel, blocks.at(begin), {begin, part_from(begin, kBlockKeys, seen)});
    i64 after = begin + kBlockKeys, head = panel.head;
    ListedBlock& next = blocks.at(after);
    if (after >= seen.end) {
        after = seen.begin / kBlockKeys * kBlockKeys;
        if (panel.is_last_of_head()) ++head;
    }
    const KeyRange keys = head < panel.item.head_end ? part_from(after, kBlockKeys, seen) : KeyRange{};
    list_block(panel, next, {after, keys});
    return {next, head, next.keys};
}

}  // namespace kvjit

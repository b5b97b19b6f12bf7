// The rules that the index arrays of a batch must keep (docs/semantics.md, section 8). The host calls these functions
// for one sequence after the other, the check kernel for one sequence per lane; runtime/src/check/rule_text.cc has a
// sentence for each finding.
//
// The rules come in steps: totals; a sequence's tokens, keys, position and row; its table's entries; its new tokens'
// slots. A step relies on the earlier ones; the steps from entries on rely on those of all sequences, so that no check
// reads past an array.
#pragma once

#include "common/abi.h"
#include "common/indices.h"
#include "common/key_range.h"
#include "common/types.h"

namespace kvjit {

using abi::CheckedBatch;
using abi::Finding;
using abi::Rule;

using abi::Entries;

/// What entries of the table are, and how many tokens one stands for; 0: a whole sequence.
struct Paging {
    i64 page;
    Entries entries;

    /// Whether an entry is a block of tokens, by number or by address, rather than a token.
    constexpr bool blocks() const { return entries != Entries::kTokens; }
};

/// Returns `holds`; sets `found` if it is false.
KVJIT_INLINE bool expect(bool holds, Finding& found, const Finding& broken) {
    if (!holds) found = broken;
    return holds;
}

// ---- Starts. Arithmetic with them wraps: a lane may read wrong starts that another lane reports. --------------------

KVJIT_INLINE i64 sum(i64 a, i64 b) {
    return static_cast<i64>(static_cast<u64>(a) + static_cast<u64>(b));
}

KVJIT_INLINE i64 difference(i64 a, i64 b) {
    return static_cast<i64>(static_cast<u64>(a) - static_cast<u64>(b));
}

KVJIT_INLINE i64 product(i64 a, i64 b) {
    return static_cast<i64>(static_cast<u64>(a) * static_cast<u64>(b));
}

/// starts[b] and starts[b + 1].
struct StartPair {
    i64 begin, end;

    KVJIT_INLINE i64 length() const { return difference(end, begin); }
};

KVJIT_INLINE StartPair starts_of(const abi::Indices& starts, i64 b) {
    return {index_at(starts, b), index_at(starts, b + 1)};
}

/// Whether the batch has keys at all; Merge's has none.
KVJIT_INLINE bool has_keys(const abi::KeyCounts& keys) {
    return is_given(keys.starts) || is_given(keys.counts) || is_given(keys.last);
}

/// What a batch's arrays say of a sequence's tokens and keys. Rules take it, so that each element is read once.
struct CheckedSequence {
    i64 index;         // of the sequence
    StartPair tokens;  // of seqstarts
    StartPair starts;  // of kvstarts, or of the pages' starts; else 0
    i64 counted;       // the element of kvlens, or of the last pages' lengths; else 0
    i64 keys;          // m, the sequence's number of keys
    i64 past;          // how many of them precede its new tokens
};

KVJIT_INLINE CheckedSequence checked_sequence(const CheckedBatch& batch, i64 b) {
    const abi::KeyCounts& keys = batch.keys;
    const abi::Indices& starts = is_given(keys.starts) ? keys.starts : keys.page_starts;
    const abi::Indices& counts = is_given(keys.counts) ? keys.counts : keys.last;
    CheckedSequence of = {b, starts_of(batch.seqstarts, b), {0, 0}, 0, 0, 0};
    if (is_given(starts)) of.starts = starts_of(starts, b);
    if (is_given(counts)) of.counted = index_at(counts, b);
    const i64 pages = of.starts.length();
    if (is_given(keys.starts))
        of.keys = of.starts.length();
    else if (is_given(keys.counts))
        of.keys = of.counted;
    else if (pages != 0)
        of.keys = sum(product(difference(pages, 1), keys.page_tokens), of.counted);
    of.past = difference(of.keys, of.tokens.length());
    return of;
}

/// The last of an array of starts is a number of rows that a tensor may have.
KVJIT_INLINE bool total_holds(Finding& found, i64 rows, i64 batch_size, i64 most, Rule below, Rule bytes) {
    return expect(rows >= 0, found, {below, batch_size - 1, batch_size, rows, 0}) &&
           expect(rows <= most, found, {bytes, batch_size - 1, batch_size, rows, most});
}

/// Table and cache have room for `keys` keys; the batch may have left the cache's size out.
KVJIT_INLINE bool room_holds(Finding& found, const CheckedBatch& batch, Paging paging, i64 keys) {
    const Rule none = paging.blocks() ? Rule::kNoBlocks : Rule::kNoTokens;
    return expect(keys <= batch.table_keys, found, {Rule::kTableKeys, -1, 0, batch.table_keys, keys}) &&
           expect(keys == 0 || batch.num_slots > 0, found, {none, -1, 0, batch.num_slots, 1, keys});
}

/// The numbers of tokens and keys in the batch, which its last sequence's starts end with.
KVJIT_INLINE bool totals_hold(Finding& found, const CheckedBatch& batch, Paging paging, const CheckedSequence& last) {
    const i64 count = batch.batch_size, tokens = last.tokens.end;
    if (!expect(tokens <= abi::kMaxNewTokens, found,
                {Rule::kNewTokens, count - 1, count, tokens, abi::kMaxNewTokens}) ||
        !total_holds(found, tokens, count, batch.most_tokens, Rule::kTokensBelow0, Rule::kTokensBytes)) {
        return false;
    }
    if (!expect(tokens <= batch.slot_rows, found, {Rule::kSlotRows, -1, 0, batch.slot_rows, tokens})) return false;
    if (!is_given(batch.keys.starts)) return true;
    const i64 keys = last.starts.end;
    return total_holds(found, keys, count, batch.most_keys, Rule::kKeysBelow0, Rule::kKeysBytes) &&
           room_holds(found, batch, paging, keys);
}

/// starts[b] and starts[b + 1] are a range; starts[0] is 0.
KVJIT_INLINE bool start_holds(Finding& found, const StartPair& starts, i64 b, Rule begins, Rule falls) {
    return expect(b != 0 || starts.begin == 0, found, {begins, 0, 0, starts.begin, 0}) &&
           expect(starts.end >= starts.begin, found, {falls, b, b + 1, starts.end, starts.begin});
}

KVJIT_INLINE bool bound_holds(Finding& found, i64 b, i64 count, i64 bound, Rule rule) {
    return expect(bound == 0 || count <= bound, found, {rule, b, b, bound, count});
}

KVJIT_INLINE bool tokens_hold(Finding& found, const CheckedBatch& batch, const CheckedSequence& of) {
    return start_holds(found, of.tokens, of.index, Rule::kSeqstartsBegin, Rule::kSeqstartsFall) &&
           bound_holds(found, of.index, of.tokens.length(), batch.max_seqlen, Rule::kMaxSeqlen);
}

/// The sequence has `excess` keys too many, or too few if that is negative: names the array's element that gives their
/// number, and the value that it should have.
KVJIT_INLINE Finding of_keys(const abi::KeyCounts& keys, Rule rule, const CheckedSequence& of, i64 excess,
                             i64 detail = 0) {
    const bool by_starts = is_given(keys.starts);
    const i64 value = by_starts ? of.starts.end : of.counted;
    return {rule, of.index, by_starts ? of.index + 1 : of.index, value, difference(value, excess), detail};
}

/// The elements that give the sequence's number of keys.
KVJIT_INLINE bool count_holds(Finding& found, const CheckedBatch& batch, const CheckedSequence& of) {
    const abi::KeyCounts& keys = batch.keys;
    const i64 b = of.index, pages = of.starts.length(), last = of.counted;
    const bool by_starts = is_given(keys.starts);
    if (!by_starts && is_given(keys.counts))
        return expect(of.counted >= 0, found, {Rule::kKvlensBelow0, b, b, of.counted, 0});
    if (!start_holds(found, of.starts, b, by_starts ? Rule::kKvstartsBegin : Rule::kRowstartsBegin,
                     by_starts ? Rule::kKvstartsFall : Rule::kRowstartsFall))
        return false;
    if (by_starts) return true;
    // Both are below 2^32: a division of 64 bits is a long piece of code on GPUs.
    const i64 most = i64{static_cast<u32>(abi::kMaxKeys - 1) / static_cast<u32>(keys.page_tokens)} + 1;
    const i64 begin = of.starts.begin;
    return expect(pages <= most, found, {Rule::kSequencePages, b, b + 1, sum(begin, pages), sum(begin, most)}) &&
           expect(pages == 0 || (last >= 1 && last <= keys.page_tokens), found,
                  {Rule::kLastPage, b, b, last, keys.page_tokens});
}

KVJIT_INLINE bool keys_hold(Finding& found, const CheckedBatch& batch, const CheckedSequence& of) {
    return count_holds(found, batch, of) &&
           expect(of.keys <= abi::kMaxKeys, found,
                  of_keys(batch.keys, Rule::kSequenceKeys, of, difference(of.keys, abi::kMaxKeys))) &&
           bound_holds(found, of.index, of.keys, batch.max_kvlen, Rule::kMaxKvlen);
}

/// New tokens are stored as the last of their sequence's keys, so they may not outnumber them, and start_pos, if given,
/// is the number of keys before them.
KVJIT_INLINE bool position_holds(Finding& found, const CheckedBatch& batch, const CheckedSequence& of) {
    if (!batch.stores) return true;
    const i64 b = of.index, tokens = of.tokens.length();
    const bool paged = is_given(batch.keys.last);
    const Finding too_few = paged ? Finding{Rule::kNewPageKeys, b, b, of.keys, tokens}
                                  : of_keys(batch.keys, Rule::kNewKeys, of, of.past, tokens);
    if (!expect(of.keys >= tokens, found, too_few)) return false;
    if (!is_given(batch.start_pos)) return true;
    const i64 start = index_at(batch.start_pos, b);
    return expect(start >= 0, found, {Rule::kStartBelow0, b, b, start, 0}) &&
           expect(start == of.past, found, {Rule::kStart, b, b, start, of.past, tokens});
}

// ---- Rows of the table ----------------------------------------------------------------------------------------------

/// Entries that `keys` keys use.
KVJIT_INLINE i64 used_entries(i64 keys, Paging paging) {
    return paging.page == 0 ? keys > 0 : keys / paging.page + (keys % paging.page != 0);
}

KVJIT_INLINE bool row_index_holds(Finding& found, const CheckedBatch& batch, i64 b) {
    if (!is_given(batch.table.row_index)) return true;
    const i64 row = index_at(batch.table.row_index, b);
    return expect(row >= 0 && row < batch.table_rows, found, {Rule::kRowIndex, b, b, row, batch.table_rows});
}

KVJIT_INLINE bool row_begin_holds(Finding& found, const CheckedBatch& batch, i64 b, const StartPair& row) {
    const i64 end = b + 1;
    return start_holds(found, row, b, Rule::kRowstartsBegin, Rule::kRowstartsFall) &&
           expect(end < batch.batch_size || row.end <= batch.table_entries, found,
                  {Rule::kRowstartsEnd, b, end, row.end, batch.table_entries});
}

/// The sequence's row lies in the table, and is long enough.
KVJIT_INLINE bool row_holds(Finding& found, const CheckedBatch& batch, Paging paging, const CheckedSequence& of) {
    const i64 b = of.index, keys = of.keys;
    i64 entries = batch.row_entries;
    if (is_given(batch.table.rowstarts)) {
        const StartPair row = starts_of(batch.table.rowstarts, b);
        if (!row_begin_holds(found, batch, b, row)) return false;
        entries = row.length();
    } else if (!row_index_holds(found, batch, b)) {
        return false;
    }
    if (used_entries(keys, paging) > entries) {
        found = {Rule::kRowLength, b, b, keys, product(entries, paging.page), entries};
        return false;
    }
    // Where kvstarts give a total, room_holds has checked this.
    const bool room = is_given(batch.keys.starts) || keys == 0 || batch.num_slots > 0;
    if (!expect(room, found, {Rule::kNoRoom, b, b, keys, 0})) return false;
    const bool one_block = paging.page == 0 && paging.blocks();
    return expect(!one_block || keys <= batch.block_tokens, found,
                  {Rule::kBlockTokens, b, b, keys, batch.block_tokens});
}

// ---- Entries of the table -------------------------------------------------------------------------------------------

/// Entries first..last-1 of a row.
struct EntryRange {
    i64 first, last;
};

/// Entries that rows of the sequence may read, its new tokens' included: those before the window of its first new token
/// are neither read nor checked.
KVJIT_INLINE EntryRange seen_entries(const CheckedBatch& batch, Paging paging, const CheckedSequence& of) {
    const KeyRange seen = keys_in_reach(of.keys, of.past, {batch.window_left, abi::kNoLimit});
    return {paging.page == 0 ? 0 : seen.begin / paging.page, used_entries(of.keys, paging)};
}

/// One of the tables: that of the codes, or that of the scales where they have their own.
struct EntryTable {
    const void* entries;
    abi::BlockMemory memory;
    bool of_scales;
};

/// A layer's tables, with entries of type Index.
template <class Index>
KVJIT_INLINE EntryTable code_table(const CheckedBatch& batch, i64 layer) {
    return {static_cast<const Index*>(batch.table.entries) + layer * batch.layer_entries, batch.codes, false};
}
template <class Index>
KVJIT_INLINE EntryTable scale_table(const CheckedBatch& batch, i64 layer) {
    return {static_cast<const Index*>(batch.table.scales) + layer * batch.layer_entries, batch.scales, true};
}

template <class Index>
KVJIT_INLINE const Index* row_of(const EntryTable& table, const CheckedBatch& batch, i64 b) {
    return static_cast<const Index*>(table.entries) + row_begin(batch.table, b);
}

/// Rules of scale blocks follow those of code blocks, in the same order.
KVJIT_INLINE Rule rule_of(const EntryTable& table, Rule of_codes) {
    constexpr int kApart = static_cast<int>(Rule::kNoScaleAddress) - static_cast<int>(Rule::kNoAddress);
    return table.of_scales ? static_cast<Rule>(static_cast<int>(of_codes) + kApart) : of_codes;
}

/// The largest entry, not an address, whose first `tokens` tokens lie in the cache; negative: there is none.
KVJIT_INLINE i64 last_entry(const CheckedBatch& batch, Paging paging, i64 tokens) {
    return batch.num_slots - (paging.blocks() ? 1 : tokens);
}

/// Whether the entry may lie in the cache: it is at most `last`, or an address that is aligned.
KVJIT_INLINE bool is_inside(const EntryTable& table, Paging paging, i64 entry, i64 last) {
    if (paging.entries == Entries::kAddresses)
        return entry > 0 && (static_cast<u64>(entry) & static_cast<u64>(table.memory.alignment - 1)) == 0;
    return entry >= 0 && entry <= last;
}

KVJIT_INLINE Rule broken_rule(const EntryTable& table, Paging paging, i64 entry) {
    switch (paging.entries) {
        case Entries::kAddresses:
            return rule_of(table, entry <= 0 ? Rule::kNoAddress : Rule::kAddressAlignment);
        case Entries::kBlocks:
            return Rule::kBlock;
        default:
            return entry < 0 ? Rule::kSlotBelow0 : Rule::kSlotEnd;
    }
}

/// Entry p of sequence b, of which the sequence uses `tokens` tokens, lies in the cache.
KVJIT_INLINE bool entry_holds(Finding& found, const CheckedBatch& batch, const EntryTable& in, Paging paging, i64 b,
                              i64 p, i64 entry, i64 tokens) {
    if (is_inside(in, paging, entry, last_entry(batch, paging, tokens))) return true;
    const abi::Table& table = batch.table;
    const i64 limit = paging.entries == Entries::kAddresses ? in.memory.alignment : batch.num_slots;
    const bool has_rows = !is_given(table.rowstarts) && paging.page != 0;
    const i64 row = !has_rows ? -1 : is_given(table.row_index) ? index_at(table.row_index, b) : b;
    found = {broken_rule(in, paging, entry), b, has_rows ? p : row_begin(table, b) + p, entry, limit, tokens, row};
    return false;
}

// ---- Slots of new tokens: no two tokens share one -------------------------------------------------------------------

/// Entries that new tokens of the sequence are stored to.
KVJIT_INLINE EntryRange new_entries(Paging paging, const CheckedSequence& of) {
    if (of.keys == of.past) return {0, 0};
    return {paging.page == 0 ? 0 : of.past / paging.page, used_entries(of.keys, paging)};
}

/// Slots begin..end-1 of new tokens: in the block `entry` where entries are blocks, else in the whole cache.
struct NewSlots {
    i64 entry;
    i64 begin, end;
    i64 sequence;
};

/// The slots of new tokens in the sequence's entry p, whose value is `entry`. That is in range: nothing here overflows.
KVJIT_INLINE NewSlots new_slots(Paging paging, const CheckedSequence& of, i64 p, i64 entry) {
    const i64 begin = p * paging.page, end = begin + paging.page;
    const i64 first = begin > of.past ? begin : of.past;
    const i64 last = paging.page == 0 || end > of.keys ? of.keys : end;
    if (paging.blocks()) return {entry, first - begin, last - begin, of.index};
    return {0, entry + first - begin, entry + last - begin, of.index};
}

/// Blocks at different addresses don't overlap; if they do, the finding names the upper one's address.
KVJIT_INLINE bool blocks_are_apart(Finding& found, const EntryTable& table, const NewSlots& a, const NewSlots& b) {
    const i64 low = a.entry < b.entry ? a.entry : b.entry, high = a.entry < b.entry ? b.entry : a.entry;
    const u64 apart = static_cast<u64>(high) - static_cast<u64>(low);
    if (apart == 0 || apart >= static_cast<u64>(table.memory.bytes)) return true;
    const i64 second = a.sequence < b.sequence ? b.sequence : a.sequence, first = a.sequence + b.sequence - second;
    found = {rule_of(table, Rule::kOverlappingBlocks), second, low, high, table.memory.bytes, first};
    return false;
}

KVJIT_INLINE bool slots_hold(Finding& found, const EntryTable& table, Paging paging, const NewSlots& a,
                             const NewSlots& b) {
    const bool addresses = paging.entries == Entries::kAddresses;
    const i64 first = a.sequence < b.sequence ? a.sequence : b.sequence, second = a.sequence + b.sequence - first;
    if (addresses && !blocks_are_apart(found, table, a, b)) return false;
    if (a.entry != b.entry || a.end <= b.begin || b.end <= a.begin) return true;
    const i64 slot = a.begin > b.begin ? a.begin : b.begin;
    if (paging.blocks())
        found = {
            addresses ? rule_of(table, Rule::kSharedAddress) : Rule::kSharedBlock, second, slot, a.entry, 0, first};
    else
        found = {Rule::kSharedSlot, second, 0, slot, 0, first};
    return false;
}

// ---- Slots that the caller chose ------------------------------------------------------------------------------------

/// The slot that the caller chose for new token `row` in a layer; negative: it is not stored.
KVJIT_INLINE i64 chosen_slot(const CheckedBatch& batch, i64 layer, i64 row) {
    return index_at(batch.slots, layer * batch.layer_slots + row);
}

/// Number of slots in the cache, counted through its blocks; the host has checked that the product doesn't overflow.
KVJIT_INLINE i64 all_slots(const CheckedBatch& batch, Paging paging) {
    return paging.blocks() ? batch.num_slots * batch.block_tokens : batch.num_slots;
}

/// New token `row` of sequence b is not stored, or is stored inside the cache.
KVJIT_INLINE bool chosen_slot_holds(Finding& found, const CheckedBatch& batch, Paging paging, i64 b, i64 row,
                                    i64 slot) {
    const i64 slots = all_slots(batch, paging);
    return expect(slot < slots, found, {Rule::kStoreSlot, b, row, slot, slots});
}

/// Two new tokens have different slots.
KVJIT_INLINE bool chosen_slots_hold(Finding& found, const NewSlots& a, const NewSlots& b) {
    const i64 first = a.sequence < b.sequence ? a.sequence : b.sequence, second = a.sequence + b.sequence - first;
    return expect(a.begin != b.begin, found, {Rule::kSharedStoreSlot, second, 0, a.begin, 0, first});
}

}  // namespace kvjit

// check: finds what is wrong with index arrays that only the device can read, before a kernel trusts them
// (docs/semantics.md, section 8).
#include "common/abi.h"
#include "common/shape.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "cuda/primitives.h"

namespace kvjit {

using abi::Rule;

// ---- 1. Contract ---------------------------------------------------------------------------------------------------

inline constexpr int kThreads = kTokenWarps * kWarpSize;
/// Beyond, sums of two starts could leave 64 bits.
inline constexpr i64 kMaxTotal = i64{1} << 62;

struct Finding {
    Rule rule;
    i64 sequence, index, value, limit;
};

/// Keeps the first of all.
KVJIT_INLINE void report(abi::Fault& fault, const Finding& finding) {
    if (atomic_add(&fault.count, 1) != 0) return;
    fault.rule = finding.rule;
    fault.sequence = finding.sequence;
    fault.index = finding.index;
    fault.value = finding.value;
    fault.limit = finding.limit;
}

/// Whether `value` is within least..most; if not, what was found.
KVJIT_INLINE bool expect(Finding& found, Rule rule, i64 sequence, i64 index, i64 value, i64 least, i64 most) {
    if (value >= least && value <= most) return true;
    found = {rule, sequence, index, value, value < least ? least : most};
    return false;
}

// ---- 2. Work split: sequences and their pages go round the warps of the grid ----------------------------------------

struct Place {
    i64 warp, warps;
    i32 lane;
};

KVJIT_INLINE Place place_of_thread(i64 blocks) {
    return {block_x() * kTokenWarps + thread_index() / kWarpSize, blocks * kTokenWarps, thread_index() % kWarpSize};
}

// ---- 3. Starts, a lane for each sequence --------------------------------------------------------------------------

KVJIT_INLINE i64 length(const i64* starts, i64 b) {
    return starts[b + 1] - starts[b];
}

/// Of starts[b] and starts[b + 1] those that a reader of sequence b uses.
KVJIT_INLINE bool check_start(Finding& found, Rule rule, const i64* starts, i64 b) {
    if (b == 0 && !expect(found, rule, 0, 0, starts[0], 0, 0)) return false;
    return expect(found, rule, b, b + 1, starts[b + 1], starts[b], kMaxTotal);
}

KVJIT_INLINE bool check_bound(Finding& found, Rule rule, i64 b, i64 count, i64 bound) {
    return bound == 0 || expect(found, rule, b, b, count, 0, bound);
}

KVJIT_INLINE bool check_new_tokens(const abi::CudaCheckArgs& args, Finding& found, i64 b) {
    if (!check_start(found, Rule::kSeqstarts, args.seqstarts, b)) return false;
    return expect(found, Rule::kQueryRows, b, b + 1, args.seqstarts[b + 1], 0, args.query_rows) &&
           check_bound(found, Rule::kMaxSeqlen, b, length(args.seqstarts, b), args.max_seqlen);
}

KVJIT_INLINE bool check_keys(const abi::CudaCheckArgs& args, Finding& found, i64 b) {
    if (!check_start(found, Rule::kKvstarts, args.kvstarts, b)) return false;
    const i64 keys = length(args.kvstarts, b);
    return expect(found, Rule::kKeyRows, b, b + 1, args.kvstarts[b + 1], 0, args.key_rows) &&
           expect(found, Rule::kKvstarts, b, b + 1, keys, 0, abi::kMaxKeys) &&
           check_bound(found, Rule::kMaxKvlen, b, keys, args.max_kvlen);
}

/// Where new tokens are stored.
KVJIT_INLINE bool check_position(const abi::CudaCheckArgs& args, Finding& found, i64 b) {
    const i64 keys = length(args.kvstarts, b), tokens = length(args.seqstarts, b);
    return expect(found, Rule::kNewKeys, b, b + 1, keys, tokens, abi::kMaxKeys) &&
           expect(found, Rule::kStartPos, b, b, args.start_pos[b], keys - tokens, keys - tokens);
}

// ---- 4. Tables ------------------------------------------------------------------------------------------------------

/// Entries that `keys` keys use.
KVJIT_INLINE i64 used_entries(i64 keys) {
    if constexpr (kPageSize == 0)
        return keys > 0;
    else
        return (keys + kPageDivisor - 1) / kPageDivisor;
}

/// Sequence b's row lies in the table, and is long enough.
KVJIT_INLINE bool check_row(const abi::CudaCheckArgs& args, Finding& found, i64 b) {
    const abi::Table& table = args.table;
    const i64 used = used_entries(length(args.kvstarts, b));
    if (table.rowstarts) {
        const i64 begin = table.rowstarts[b];
        return expect(found, Rule::kTableRow, b, b, begin, 0, args.table_entries) &&
               expect(found, Rule::kTableWidth, b, b, used, 0, args.table_entries - begin);
    }
    const i64 row = table.row_index ? table.row_index[b] : b;
    return expect(found, Rule::kTableRow, b, b, row, 0, args.table_rows - 1) &&
           expect(found, Rule::kTableWidth, b, b, used, 0, args.table_entries);
}

/// What of sequence b must hold before anyone may look at its table's entries.
KVJIT_INLINE bool check_sequence(const abi::CudaCheckArgs& args, Finding& found, i64 b) {
    if (!check_new_tokens(args, found, b) || !check_keys(args, found, b)) return false;
    if constexpr (!kCached) return true;
    return (!args.start_pos || check_position(args, found, b)) && check_row(args, found, b);
}

/// Slots behind entry p of sequence b: first and number.
KVJIT_INLINE Run slots_of_entry(const abi::CudaCheckArgs& args, i64 b, i64 p, i64 from, i64 to) {
    const i64 page = kPageSize == 0 ? to : kPageSize;
    const i64 begin = p * page > from ? p * page : from;
    const i64 end = kPageSize == 0 || (p + 1) * page > to ? to : (p + 1) * page;
    const i64 entry = table_row(args.table, b)[p];
    return {entry, begin - p * page, begin, end - begin};
}

/// The tokens (or the block) of entry p lie in the cache.
KVJIT_INLINE void check_entry(const abi::CudaCheckArgs& args, i64 b, i64 p) {
    const Run run = slots_of_entry(args, b, p, 0, length(args.kvstarts, b));
    const i64 last = kBlocks ? args.num_slots - 1 : args.num_slots - run.count;
    Finding found;
    if (!expect(found, Rule::kEntry, b, p, run.entry, 0, last)) report(*args.fault, found);
}

// ---- 5. New slots ---------------------------------------------------------------------------------------------------

/// Entries first..last-1 of sequence b get new tokens.
struct NewEntries {
    i64 first, last;
};

KVJIT_INLINE NewEntries new_entries(const abi::CudaCheckArgs& args, i64 b) {
    const i64 keys = length(args.kvstarts, b), past = args.start_pos[b];
    if (keys == past) return {0, 0};
    return {kPageSize == 0 ? 0 : past / kPageDivisor, used_entries(keys)};
}

/// New tokens behind entry p as slots first..first+count-1, numbered through blocks.
struct Slots {
    i64 first, count;
};

KVJIT_INLINE Slots new_slots(const abi::CudaCheckArgs& args, i64 b, i64 p) {
    const Run run = slots_of_entry(args, b, p, args.start_pos[b], length(args.kvstarts, b));
    return {run.entry * (kBlocks ? kPageSize : 1) + run.first, run.count};
}

/// Entry q of sequence `other` shares no new token's slot with `own`, which are sequence b's.
KVJIT_INLINE void check_apart(const abi::CudaCheckArgs& args, const Slots& own, i64 b, i64 other, i64 q) {
    const Slots slots = new_slots(args, other, q);
    if (slots.first < own.first + own.count && own.first < slots.first + slots.count)
        report(*args.fault, {Rule::kSharedSlot, other, q, slots.first, b});
}

/// No new token of an entry behind (b, p) has a slot of (b, p)'s. Lanes share the entries of b, then the sequences
/// behind it; those with several entries, as prefills have them, they take one by one, together.
KVJIT_INLINE void check_shared(const abi::CudaCheckArgs& args, const Place& place, i64 b, i64 p) {
    const Slots own = new_slots(args, b, p);
    const auto share_entries = [&](i64 other, i64 from) {
        for (i64 q = from + place.lane; q < new_entries(args, other).last; q += kWarpSize)
            check_apart(args, own, b, other, q);
    };
    share_entries(b, p + 1);
    for (i64 first = b + 1; first < args.batch_size; first += kWarpSize) {
        const i64 other = first + place.lane;
        const NewEntries entries = other < args.batch_size ? new_entries(args, other) : NewEntries{0, 0};
        const i64 count = entries.last - entries.first;
        if (count == 1) check_apart(args, own, b, other, entries.first);
        for (u32 many = ballot(count > 1); many != 0; many &= many - 1) {
            const i64 long_one = first + count_ones((many & -many) - 1);
            share_entries(long_one, new_entries(args, long_one).first);
        }
    }
}

// ---- 6. Store: nothing but the fault --------------------------------------------------------------------------------

/// Each warp looks at all sequences: it trusts no other's word for what it reads next. The first one reports the first
/// of them that is faulty.
KVJIT_INLINE bool check_sequences(const abi::CudaCheckArgs& args, const Place& place) {
    for (i64 first = 0; first < args.batch_size; first += kWarpSize) {
        const i64 b = first + place.lane;
        Finding found;
        const bool sound = b >= args.batch_size || check_sequence(args, found, b);
        const u32 faulty = ballot(!sound);
        if (faulty == 0) continue;
        const bool is_first = !sound && (faulty & ((1u << place.lane) - 1)) == 0;
        if (place.warp == 0 && is_first) report(*args.fault, found);
        return false;
    }
    return true;
}

KVJIT_INLINE void check_entries(const abi::CudaCheckArgs& args, const Place& place, i64 b) {
    const i64 used = used_entries(length(args.kvstarts, b));
    const u32 turn = static_cast<u32>(place.warp + b) % static_cast<u32>(place.warps);  // others begin with other warps
    for (i64 p = i64{turn} * kWarpSize + place.lane; p < used; p += place.warps * kWarpSize) check_entry(args, b, p);
}

KVJIT_INLINE void check_batch(const abi::CudaCheckArgs& args, const Place& place) {
    if (!check_sequences(args, place) || !kCached || !args.entries) return;
    i64 turn = 0;  // of which warp
    for (i64 b = 0; b < args.batch_size; ++b) {
        check_entries(args, place, b);
        if (!args.slots) continue;
        const NewEntries entries = new_entries(args, b);
        for (i64 p = entries.first; p < entries.last; ++p) {
            if (turn == place.warp) check_shared(args, place, b, p);
            turn = turn + 1 == place.warps ? 0 : turn + 1;
        }
    }
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kCheckShape.threads, kvjit::kCheckShape.blocks_per_sm)
kvjit_check(KVJIT_PARAM(kvjit::abi::CudaCheckArgs) args) {
    kvjit::check_batch(args, kvjit::place_of_thread(args.blocks));
}

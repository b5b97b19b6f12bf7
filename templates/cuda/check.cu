// check: checks index arrays that only the device can read, before other kernels rely on them (docs/semantics.md,
// section 8). To compile it takes NVRTC far longer than to run it takes the GPU: no loop is unrolled, and what
// sequences, and two entries, are compared by stands in the text once.
#include "common/batch_rules.h"
#include "common/spec_block.h"
#include "cuda/machine/contract.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- 1. Contract ---------------------------------------------------------------------------------------------------

inline constexpr Paging kPaging = {kPageSize, static_cast<Entries>(kEntries)};

/// Stores the finding if it is the first one. layer: where layers have tables or slots of their own.
KVJIT_INLINE void report(abi::Fault& fault, const Finding& found, i64 layer = -1) {
    if (atomic_add(&fault.count, 1) != 0) return;
    fault.found = found;
    fault.found.layer = layer;
}

// ---- 2. Work split: the warps of the grid take sequences' pages in turn ---------------------------------------------

struct Place {
    i64 warp, warps;
    i32 lane;
};

KVJIT_INLINE Place place_of_thread(i64 blocks) {
    return {block_x() * kTokenWarps + thread_index() / kWarpSize, blocks * kTokenWarps, thread_index() % kWarpSize};
}

// ---- 3. Sequences, a lane for each ----------------------------------------------------------------------------------

/// The tensors have rows for all tokens and keys of the sequences up to this one.
KVJIT_INLINE bool rows_hold(const abi::CudaCheckArgs& args, Finding& found, const CheckedSequence& of) {
    const i64 b = of.index, tokens = of.tokens.end;
    const i64 keys = is_given(args.batch.keys.starts) ? of.starts.end : 0;
    return expect(tokens <= args.query_rows, found, {Rule::kQueryRows, b, b + 1, tokens, args.query_rows}) &&
           expect(keys <= args.key_rows, found, {Rule::kKeyRows, b, b + 1, keys, args.key_rows});
}

/// The rules of sequence b that must hold before its table's entries may be read.
KVJIT_INLINE bool sequence_holds(const abi::CudaCheckArgs& args, Finding& found, i64 b) {
    const CheckedBatch& batch = args.batch;
    const CheckedSequence of = checked_sequence(batch, b);
    if (b + 1 == batch.batch_size && !totals_hold(found, batch, kPaging, of)) return false;
    if (!tokens_hold(found, batch, of) || !keys_hold(found, batch, of) || !rows_hold(args, found, of)) return false;
    if constexpr (!kCached) return true;
    return position_holds(found, batch, of) && row_holds(found, batch, kPaging, of);
}

// ---- 4. Entries and new tokens' slots, once all sequences hold -----------------------------------------------------

/// The table that is checked, of codes or of scales.
struct Checked {
    const abi::CudaCheckArgs& args;
    EntryTable table;
    i64 layer;  // as a Finding names it

    KVJIT_INLINE i64 entry(i64 b, i64 p) const { return row_of<Index>(table, args.batch, b)[p]; }
};

/// The tokens of the sequence that lie where entry p says.
KVJIT_INLINE i64 tokens_of_entry(const CheckedSequence& of, i64 p) {
    const i64 rest = of.keys - p * kPageSize;
    return kPageSize == 0 || rest < kPageSize ? rest : kPageSize;
}

KVJIT_INLINE void check_entry(const Checked& checked, const CheckedSequence& of, i64 p) {
    const i64 b = of.index, tokens = tokens_of_entry(of, p);
    Finding found;
    if (!entry_holds(found, checked.args.batch, checked.table, kPaging, b, p, checked.entry(b, p), tokens))
        report(*checked.args.fault, found, checked.layer);
}

/// None of an entry out of range: that is what is wrong with it, though another warp may yet have to look at it.
KVJIT_INLINE NewSlots new_slots_of(const Checked& checked, const CheckedSequence& of, i64 p) {
    const i64 entry = checked.entry(of.index, p),
              last = last_entry(checked.args.batch, kPaging, tokens_of_entry(of, p));
    return is_inside(checked.table, kPaging, entry, last) ? new_slots(kPaging, of, p, entry) : NewSlots{0, 0, 0, 0};
}

/// No new token in entry q of sequence `other` has a slot of `own`.
KVJIT_INLINE void check_apart(const Checked& checked, const NewSlots& own, const CheckedSequence& other, i64 q) {
    Finding found;
    if (!slots_hold(found, checked.table, kPaging, own, new_slots_of(checked, other, q)))
        report(*checked.args.fault, found, checked.layer);
}

/// No new token in an entry after entry p of a sequence has a slot of one in that entry. Lanes take later entries of
/// the sequence, then a later sequence each; sequences with several new entries, such as prefills, are taken by all
/// lanes together.
KVJIT_INLINE void check_shared(const Checked& checked, const Place& place, const CheckedSequence& of, i64 p) {
    const CheckedBatch& batch = checked.args.batch;
    const NewSlots own = new_slots_of(checked, of, p);
    CheckedSequence other = of;  // the sequence whose entries this lane compares now
    // Those entries: the first one, and each kWarpSize-th after it.
    EntryRange entries = {p + 1 + place.lane, new_entries(kPaging, of).last};
    i64 group = of.index + 1 - kWarpSize;  // lanes take the kWarpSize sequences from this one on, one each
    u32 long_ones = 0;  // the lanes of the group whose sequences have several entries, which all lanes take together
    for (;;) {
#pragma unroll 1
        for (i64 q = entries.first; q < entries.last; q += kWarpSize) check_apart(checked, own, other, q);
        const bool together = long_ones != 0;
        if (!together) group += kWarpSize;
        if (group >= batch.batch_size) return;
        const i64 b = group + (together ? count_ones((long_ones & -long_ones) - 1) : place.lane);
        other = b < batch.batch_size ? checked_sequence(batch, b) : CheckedSequence{};
        entries = new_entries(kPaging, other);
        if (together) {
            long_ones &= long_ones - 1;
            entries.first += place.lane;
        } else {
            const bool is_long = entries.last - entries.first > 1;
            long_ones = ballot(is_long);
            if (is_long) entries.last = entries.first;  // not now: all lanes take them next
        }
    }
}

// ---- 6. Store: nothing but the fault --------------------------------------------------------------------------------

/// Each warp checks all sequences, since warps of different blocks can't wait for each other's result. The first warp
/// reports the first faulty sequence.
KVJIT_INLINE bool check_sequences(const abi::CudaCheckArgs& args, const Place& place) {
#pragma unroll 1
    for (i64 first = 0; first < args.batch.batch_size; first += kWarpSize) {
        const i64 b = first + place.lane;
        Finding found;
        const bool sound = b >= args.batch.batch_size || sequence_holds(args, found, b);
        const u32 faulty = ballot(!sound);
        if (faulty == 0) continue;
        const bool is_first = !sound && (faulty & ((1u << place.lane) - 1)) == 0;
        if (place.warp == 0 && is_first) report(*args.fault, found);
        return false;
    }
    return true;
}

/// The warp's turn in sequence b. The warp that begins differs from sequence to sequence, which spreads short rows over
/// warps.
KVJIT_INLINE i64 turn_in(const Place& place, i64 b) {
    return static_cast<u32>(place.warp + b) % static_cast<u32>(place.warps);
}

/// visit(b, false) for the sequences in which the warp has a turn, as visit(b, true) tells. The warp calls it together;
/// when it asks, each lane asks for another sequence, since warps have turns in few, and to load the lengths of one
/// after the other takes long. One call is both, as what is written twice compiles twice.
template <class F>
KVJIT_INLINE void for_own_sequences(const CheckedBatch& batch, const Place& place, F&& visit) {
#pragma unroll 1
    for (i64 first = 0; first < batch.batch_size; first += kWarpSize) {
        i64 b = first + place.lane;
        u32 own = 0;  // the lanes of sequences yet to be visited
        bool asks = true;
        do {
            const bool has_turn = b < batch.batch_size && visit(b, asks);
            own = asks ? ballot(has_turn) : own & (own - 1);
            asks = false;
            b = first + count_ones((own & -own) - 1);
        } while (own != 0);
    }
}

/// The new entries of a sequence that are compared with others': none where the caller chose the slots.
KVJIT_INLINE EntryRange compared_entries(const CheckedBatch& batch, const CheckedSequence& of) {
    return batch.stores && !is_given(batch.slots) ? new_entries(kPaging, of) : EntryRange{0, 0};
}

/// Warps take kWarpSize entries, and one new entry, in turn.
KVJIT_INLINE void check_table(const Checked& checked, const Place& place) {
    const CheckedBatch& batch = checked.args.batch;
    for_own_sequences(batch, place, [&](i64 b, bool asks) {
        const CheckedSequence of = checked_sequence(batch, b);
        const EntryRange seen = seen_entries(batch, kPaging, of), compared = compared_entries(batch, of);
        const i64 turn = turn_in(place, b), entry = seen.first + turn * kWarpSize, new_entry = compared.first + turn;
        if (asks) return entry < seen.last || new_entry < compared.last;
#pragma unroll 1
        for (i64 p = entry + place.lane; p < seen.last; p += place.warps * kWarpSize) check_entry(checked, of, p);
#pragma unroll 1
        for (i64 p = new_entry; p < compared.last; p += place.warps) check_shared(checked, place, of, p);
        return true;
    });
}

/// The layer that a Finding about slots names.
KVJIT_INLINE i64 named_slots(const CheckedBatch& batch, i64 layer) {
    return batch.layer_slots == 0 ? -1 : layer;
}

/// The slot that the caller chose for new token `row` of sequence b.
KVJIT_INLINE NewSlots chosen_slots(const abi::CudaCheckArgs& args, i64 layer, i64 b, i64 row) {
    const i64 slot = chosen_slot(args.batch, layer, row);
    return {0, slot, slot + 1, b};
}

/// No new token after `row`, whose slot is `own`, has the same slot. Lanes take the tokens in turn.
KVJIT_INLINE void check_chosen_apart(const abi::CudaCheckArgs& args, const Place& place, i64 layer, const NewSlots& own,
                                     i64 row) {
    const i64 end = index_at(args.batch.seqstarts, args.batch.batch_size);
#pragma unroll 1
    for (i64 other = row + 1 + place.lane; other < end; other += kWarpSize) {
        if (chosen_slot(args.batch, layer, other) != own.begin) continue;
        i64 b = own.sequence;  // of the other token, which only the finding names
#pragma unroll 1
        while (index_at(args.batch.seqstarts, b + 1) <= other) ++b;
        Finding found;
        if (!chosen_slots_hold(found, own, {0, own.begin, own.end, b}))
            report(*args.fault, found, named_slots(args.batch, layer));
    }
}

/// From new token `row` on, the first whose turn is this warp's: warps take new tokens in turn. Rows and warps are
/// below 2^32, and a division of 64 bits is a long piece of code.
KVJIT_INLINE i64 first_turn(const Place& place, i64 row) {
    const u32 warps = static_cast<u32>(place.warps), taken = static_cast<u32>(row) % warps;
    return row + (static_cast<u32>(place.warp) + warps - taken) % warps;
}

/// Checks all chosen slots of a layer.
KVJIT_INLINE void check_chosen(const abi::CudaCheckArgs& args, const Place& place, i64 layer) {
    for_own_sequences(args.batch, place, [&](i64 b, bool asks) {
        const i64 end = index_at(args.batch.seqstarts, b + 1);
        i64 row = first_turn(place, index_at(args.batch.seqstarts, b));
        if (asks) return row < end;
#pragma unroll 1
        for (; row < end; row += place.warps) {
            const NewSlots own = chosen_slots(args, layer, b, row);
            if (own.begin < 0) continue;
            Finding found;
            const bool inside = chosen_slot_holds(found, args.batch, kPaging, b, row, own.begin);
            if (!inside && place.lane == 0) report(*args.fault, found, named_slots(args.batch, layer));
            if (inside) check_chosen_apart(args, place, layer, own, row);
        }
        return true;
    });
}

KVJIT_INLINE void check_batch(const abi::CudaCheckArgs& args, const Place& place) {
    if (!check_sequences(args, place) || !kCached || !args.entries) return;
    const CheckedBatch& batch = args.batch;
#pragma unroll 1
    for (i64 layer = 0; layer < batch.layers; ++layer) {
        const bool own_table = layer == 0 || batch.layer_entries != 0, own_slots = layer == 0 || batch.layer_slots != 0;
        const i64 named = batch.layer_entries == 0 ? -1 : layer;
        if (own_table) check_table({args, code_table<Index>(batch, layer), named}, place);
        if (own_table && kPaging.entries == Entries::kAddresses && batch.scales.bytes != 0)
            check_table({args, scale_table<Index>(batch, layer), named}, place);
        if (own_slots && batch.stores && is_given(batch.slots)) check_chosen(args, place, layer);
    }
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kCheckShape.threads, kvjit::kCheckShape.blocks_per_sm)
kvjit_check(KVJIT_PARAM(kvjit::abi::CudaCheckArgs) args) {
    kvjit::check_batch(args, kvjit::place_of_thread(args.blocks));
}

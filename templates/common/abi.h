// The kernel ABI: the arguments that the runtime passes to compiled programs. The runtime and all templates include
// this file, which therefore includes no system header.
//
// Every stride and offset is in bytes and 64-bit unless a name says otherwise. kKernelAbi is part of each identity:
// after a release, raise it with every change in here.
#pragma once

namespace kvjit::abi {

inline constexpr int kKernelAbi = 2;

using i64 = long;  // std::int64_t on every machine that kvjit runs on; NVRTC has no name for that
static_assert(sizeof(i64) == 8);

/// Keys of a chunk. Chunk c is keys c*kChunk .. c*kChunk+kChunk-1 of a sequence. Each chunk gives a partial result of
/// its own, and partials merge in ascending order, so that a result's bits don't depend on how work is split.
inline constexpr i64 kChunk = 512;

/// The most keys of one sequence: kernels compare positions in 32 bits. Offsets are 64-bit all the same.
inline constexpr i64 kMaxKeys = i64{1} << 30;

/// The most new tokens of one call, S. A larger S is almost certainly uninitialised; it must be caught early, since a
/// plan makes items for S tokens before any tensor bounds S.
inline constexpr i64 kMaxNewTokens = i64{1} << 30;

inline constexpr i64 kNoLimit = 0x7fffffffffffffff;

/// An array of starts, lengths, positions or rows. narrow: elements have 32 bits, else 64. Null: not given.
struct Indices {
    const void* data;
    i64 narrow;
};

/// What a table's entries are: indices of tokens, ids of blocks, or addresses of blocks.
enum class Entries : int { kTokens, kBlocks, kAddresses };

/// Keys, values, key scales or value scales, in the layer that the call works on:
///     address(entry, t, h) = base + entry * page_stride + t * token_stride + h * head_stride
/// where t is the token inside the page, and entry a token index (page_stride == token_stride), a block id, or a
/// block's address (page_stride == 1; base is then the offset of the plane in the block).
struct Plane {
    char* base;
    i64 page_stride;
    i64 token_stride;
    i64 head_stride;
};

/// For layouts that split axes: from one piece of a row's elements, or of a page's tokens, to the next; else 0.
struct Pieces {
    i64 element_stride;
    i64 token_stride;
};

struct Cache {
    Plane key, value;
    Plane key_scale, value_scale;  // unused when quant_bit is 0
};

/// Where sequence b's row of the table begins:
///     rowstarts ? entries + rowstarts[b] : entries + (row_index ? row_index[b] : b) * row_stride
/// kPageSize == 0 (offset, dense): the row has one entry, the slot of position 0. Otherwise position t is token
/// t % kPageSize of entry row[t / kPageSize].
struct Table {
    const void* entries;  // Index
    const void* scales;   // Index: addresses of scale blocks, where entries are addresses and the cache is quantised
    Indices rowstarts;
    Indices row_index;
    i64 row_stride;  // in entries
};

/// m, the number of keys of sequence b:
///     starts given:  starts[b + 1] - starts[b]
///     counts given:  counts[b]
///     last given:    (pages - 1) * page_tokens + last[b], pages = page_starts[b + 1] - page_starts[b]; 0 without pages
/// One of the three is given, except for Merge, which has no keys.
struct KeyCounts {
    Indices starts;  // (B+1); the mask's columns, packed keys and rows of token tables begin at starts[b], too
    Indices counts;  // (B)
    Indices last;    // (B)
    Indices page_starts;
    i64 page_tokens;
};

/// A dense tensor (token, head, D), D contiguous.
struct Rows {
    char* base;
    i64 token_stride;
    i64 head_stride;
};

/// An item of store (new tokens begin..end-1 of a sequence) or of load (positions begin..end-1), for a range of kv
/// heads.
struct TokenItem {
    i64 sequence;
    i64 begin, end;
    i64 head_begin, head_end;
};

struct StoreArgs {
    Cache cache;
    Pieces key_pieces, value_pieces;
    Table table;
    Rows key, value;  // T1, row = seqstarts[b] + i
    Indices seqstarts;
    KeyCounts keys;   // of which new tokens are the last
    Indices slots;    // (S), where given: row i is stored there, whatever the table says; negative: not stored
    i64 slot_tokens;  // slot s of those is token s % slot_tokens of block s / slot_tokens; 0: token s of the cache
};

struct LoadArgs {
    Cache cache;
    Pieces key_pieces, value_pieces;
    Table table;
    // T1 out, row = kvstarts[b] + t, head = h * num_repeat + r. A null base: not wanted
    Rows key, value;
    KeyCounts keys;
    i64 num_repeat;
};

/// An item of attend: new tokens row_begin..row_end-1 of one sequence, counted in it, kv heads head_begin..head_end-1
/// (each with its kGroup query heads), chunks chunk_begin..chunk_end-1 of the keys.
/// partial < 0: these are all the chunks; the program merges them and writes output and lse.
/// partial >= 0: it writes each chunk's (acc, max, sum) to
///     partials[partial + (((c - chunk_begin) * rows + i - row_begin) * heads + h - head_begin*kGroup) *
///     kPartialStride]
/// floats, rows = row_end - row_begin, heads = (head_end - head_begin) * kGroup,
/// kPartialStride = D + 8, acc at +0, max at +D, sum at +D+1, D the head_dim of values.
struct AttendItem {
    i64 sequence;
    i64 row_begin, row_end;
    i64 head_begin, head_end;
    i64 chunk_begin, chunk_end;
    i64 partial;
};

inline constexpr i64 kPartialTail = 8;  // floats after acc in a partial

/// Numbers and tensors that scores, and the keys that rows see, depend on beside queries, keys and masks: those of the
/// rules of scores in generator/score_rules.h.
struct ScoreArgs {
    i64 window_left, window_right;  // keys that a row sees before and after its own position; kNoLimit: all
    const float* sinks;             // (H): natural log of what is added to a row's sum of exp(score)
    float softmax_scale;
    float soft_cap;
};

struct AttendArgs {
    Rows query, output;  // T1
    float* lse;          // null: not wanted
    i64 lse_token_stride, lse_head_stride;
    Cache cache;
    Table table;
    Indices seqstarts;
    KeyCounts keys;
    const char* mask;  // T1; element (h, i, j) at h*mask_head_stride + i*mask_row_stride + j, i and j global
    i64 mask_head_stride, mask_row_stride;
    const float* slopes;  // (H), ALiBi only
    float* partials;
    i64 num_kv_heads;
    i64 decoding_batches;
    ScoreArgs score;
};

/// An item of merge: output tokens and query heads, and where their parts lie. Offsets and strides are in elements of
/// Partial (acc...) and in floats (stat...): part p, token i, head h is at acc + p*acc_part + (i-begin)*acc_token + ...
struct MergeItem {
    i64 token_begin, token_end;
    i64 head_begin, head_end;
    i64 parts;
    i64 acc, acc_part, acc_token, acc_head;
    i64 stat, stat_part, stat_token, stat_head;
};

struct MergeArgs {
    const char* acc;   // Partial: acc of a part, not divided by sum
    const float* max;  // a part's largest score, or its lse
    const float* sum;  // a part's sum of exp(score - max); null, as always on CUDA: (acc, max) are (output, lse)
    Rows output;       // T1
    float* lse;        // null: not wanted
    i64 lse_token_stride, lse_head_stride;
    const float* sinks;  // (H), as in ScoreArgs; partials don't count them
};

/// A plane of a relayout: at the first layer and head to copy, with the stride of layers.
struct LayerPlane {
    Plane plane;
    i64 layer_stride;
};

/// A cache that a relayout copies from or to. Run r in layer l has entry entries[l * layer_entries + r].
struct RelayoutSide {
    LayerPlane key, value, key_scale, value_scale;
    Pieces key_pieces, value_pieces;
    const i64* entries;
    const i64* scales;  // entries of scale blocks where these have addresses of their own, else `entries`
    i64 layer_entries;  // 0 where all layers have the same entries
    i64 token_step;     // from a token of a run to the next one
};

/// A run: `count` tokens of one sequence that lie in one page of each cache, and the first one's number in each page.
struct TokenRun {
    i64 from_token, to_token;
    i64 count;
};

struct RelayoutArgs {
    RelayoutSide from, to;
    const TokenRun* runs;
    i64 num_kv_heads;
    i64 streams;  // not 0: more is written than the processor's caches hold, so stores bypass them
};

/// An item of relayout: runs, and layers counted from the first one to copy.
struct RelayoutItem {
    i64 run_begin, run_end;
    i64 layer_begin, layer_end;
};

// A CPU program is one extern "C" function, named kvjit_ and the program's name: kvjit_attend_decode. It takes pointers
// to its arguments and to an item, does the item's work and returns nothing.

// ---- CUDA -----------------------------------------------------------------------------------------------------------
// A program is one kernel of the same name, whose only parameter is one of the structs below, by value. All arrays lie
// on the device. The grid is sized by upper bounds that the host knows; blocks find their work from the index arrays
// and return where there is none, so that a captured graph serves all lengths within the bounds.

/// The rules of a batch: common/batch_rules.h checks them, runtime/src/check/rule_text.cc has their sentences.
enum class Rule : int {
    kNewTokens = 1,  // S and K
    kTokensBelow0,
    kTokensBytes,
    kKeysBelow0,
    kKeysBytes,
    kTableKeys,
    kSlotRows,
    kNoTokens,
    kNoBlocks,
    kSeqstartsBegin,  // starts and lengths
    kSeqstartsFall,
    kMaxSeqlen,
    kKvstartsBegin,
    kKvstartsFall,
    kSequenceKeys,
    kKvlensBelow0,
    kLastPage,
    kSequencePages,
    kMaxKvlen,
    kNewKeys,  // where new tokens are stored
    kNewPageKeys,
    kStartBelow0,
    kStart,
    kRowstartsBegin,  // rows of the table
    kRowstartsFall,
    kRowstartsEnd,
    kRowIndex,
    kRowLength,
    kNoRoom,
    kBlock,  // entries of the table
    kSlotBelow0,
    kSlotEnd,
    kSharedSlot,
    kSharedBlock,
    kNoAddress,  // entries that are addresses
    kAddressAlignment,
    kSharedAddress,
    kOverlappingBlocks,
    kNoScaleAddress,  // the same rules for scale blocks, in the same order
    kScaleAddressAlignment,
    kSharedScaleAddress,
    kOverlappingScaleBlocks,
    kBlockTokens,  // one block a sequence
    kStoreSlot,    // slots that the caller chose
    kSharedStoreSlot,
    kQueryRows,  // tensors of the run: on the device only
    kKeyRows,
};

/// A rule that is broken, and where.
struct Finding {
    Rule rule;
    i64 sequence;  // -1: none
    i64 index;     // in the array, or in the row of a table that has rows
    i64 value, limit;
    i64 detail = 0;  // a further number for the rule's sentence
    i64 row = -1;    // of the table; -1: it has no rows
    i64 layer = -1;  // on the device: the layer whose table or slots were checked; -1: all layers share them
};

struct BlockMemory {
    i64 alignment;  // of an address
    i64 bytes;      // of a block
};

/// Index arrays, and the limits that they must keep; kNoLimit where there is none.
struct CheckedBatch {
    i64 batch_size;  // not 0
    Indices seqstarts;
    KeyCounts keys;                  // none given: Merge, which has no keys
    Indices start_pos;               // null: new tokens begin where the keys before them end
    bool stores;                     // new tokens are stored
    i64 max_seqlen, max_kvlen;       // 0: unknown
    i64 most_tokens, most_keys;      // the largest S and K whose tensors' bytes fit 64 bits
    i64 window_left;                 // keys that a row sees before its position
    i64 num_slots;                   // of the cache: tokens, or blocks where entries are blocks
    i64 block_tokens;                // of a block: page_size, or the most that a sequence may have; else 0
    BlockMemory codes, scales;       // where entries are addresses; scales.bytes 0: there are none
    Indices slots;                   // StoreArgs'
    i64 slot_rows;                   // the most S that those slots serve
    i64 layers;                      // that the table and the slots have rows for; 1 where all layers share them
    i64 layer_entries, layer_slots;  // strides of layers; 0 where all layers share them
    Table table;
    i64 table_keys;               // the most K that a table of tokens serves
    i64 table_entries;            // of a table with rowstarts, in all
    i64 table_rows, row_entries;  // of a table without
};

/// The first fault that was found. count 0: none, and `found` means nothing.
struct Fault {
    unsigned count;
    Finding found;
};

/// Grid (x): any number of blocks of kTokenWarps warps. Only the fault whose finder reads fault->count as 0 is kept.
struct CudaCheckArgs {
    CheckedBatch batch;
    i64 query_rows, key_rows;  // that the tensors have, or kNoLimit
    bool entries;              // check the table's entries and new tokens' slots, too
    i64 blocks;                // gridDim.x
    Fault* fault;
};

/// Facts about the batch that all kernels of a run need.
struct Launch {
    i64 batch_size;
    i64 num_kv_heads;
    i64 first_slot;         // 0; 1 where entries are addresses, as no block lies at address 0
    i64 num_slots;          // number of what table entries count: tokens, or blocks where a page is a block
    i64 slots_of_token;     // 1 where entries count tokens, else 0
    i64 block_tokens;       // tokens of a block where entries are blocks, else kNoLimit
    const unsigned* fault;  // Fault::count; not null and not 0: return at once
};

/// How `warps` warps divide a token's kv heads: warp w takes heads_of_warp of them from w * heads_of_warp on, the last
/// warp what is left.
struct HeadSplit {
    i64 warps;
    i64 heads_of_warp;
};

/// Grid (x): the split's warps for each (new token, warp, key or value), the last varying fastest; kTokenWarps warps a
/// block.
struct CudaStoreArgs {
    Launch launch;
    StoreArgs store;
    HeadSplit split;
};

/// Grid (x): as store's, over (row of the packed output, warp, key or value).
struct CudaLoadArgs {
    Launch launch;
    LoadArgs load;
    HeadSplit split;
};

/// Query rows of a kv head are packed: row r of sequence b is new token r / kGroup, query head kv_head*kGroup + r %
/// kGroup. Decode takes the sequences of up to kDecodeTokens new tokens, prefill the others.
///     decode   grid x: (sequence, kv head, tile of rows), y: split of the keys, the last first
///     prefill  grid x: tile of rows counted over all sequences, the last first, y: split of the keys * Hkv + kv head
/// Where tile t of R rows (decode: x; prefill: tile of rows, counted from the first, * Hkv + kv head) has several
/// splits, each stores row r's partial, in AttendItem's format, at
///     partials + ((t * splits + split) * R + r) * kPartialStride,  r counted in the tile
/// and the tile's block that finishes last merges them.
struct CudaAttendArgs {
    Launch launch;
    AttendArgs attend;
    i64 split_keys;      // keys of a split, a multiple of kSplitUnit; 0: up to `splits` equal parts
    i64 least_split;     // the least keys of such a part, but for the last; a multiple of kSplitUnit
    i64 splits;          // the most of a tile; with 1, partials and counters are not used
    unsigned* counters;  // (tiles), splits of a tile that have finished; 0 before and after each run
    i64 tiles;           // decode: tiles of rows in the grid for each (sequence, kv head)
};

/// Grid (x): a block of kTokenWarps warps for each (layer, run, key or value), the last varying fastest.
struct CudaRelayoutArgs {
    RelayoutArgs relayout;
    i64 runs;
};

/// Grid (x): a warp for each (token, query head) of the item. Tokens from seqstarts[batch_size] on are not written.
struct CudaMergeArgs {
    Launch launch;
    MergeArgs merge;
    MergeItem item;  // all rows and heads of the output tensor
    Indices seqstarts;
};

}  // namespace kvjit::abi

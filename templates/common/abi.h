// The kernel ABI: what the runtime hands to a compiled program. Included by the runtime and by every template, so
// that the two can't drift apart. No system header: compiled kernels see this file too.
//
// Every stride and offset is in bytes and 64-bit unless a name says otherwise. kKernelAbi is part of each identity:
// after a release, raise it with every change to what stands here.
#pragma once

namespace kvjit::abi {

inline constexpr int kKernelAbi = 2;

using i64 = long;  // as std::int64_t on every machine that kvjit runs on; NVRTC knows no name for it
static_assert(sizeof(i64) == 8);

/// Keys in one chunk. Chunks lie at absolute positions (chunk c holds keys c*kChunk .. c*kChunk+kChunk-1), each gives
/// an independent partial result, and partials merge in ascending order: a sequence's bits depend on nothing else.
inline constexpr i64 kChunk = 512;

/// Keys of one sequence, at most: kernels compare positions in 32 bits. Offsets are 64-bit all the same.
inline constexpr i64 kMaxKeys = i64{1} << 30;

/// New tokens of one call, S, at most. A larger S is almost certainly uninitialised; it must be caught early, since a
/// plan makes items for S tokens before any tensor bounds S.
inline constexpr i64 kMaxNewTokens = i64{1} << 30;

/// What is not limited.
inline constexpr i64 kNoLimit = 0x7fffffffffffffff;

/// An array of starts, lengths, positions or rows: 32-bit elements where `narrow`, else 64-bit ones. Null: not given.
struct Indices {
    const void* data;
    i64 narrow;
};

/// What the entries of a table are: numbers of tokens or of blocks, or blocks' addresses.
enum class Entries : int { kTokens, kBlocks, kAddresses };

/// One of key, value, key scale, value scale, at the layer that the call works on:
///     address(entry, t, h) = base + entry * page_stride + t * token_stride + h * head_stride
/// where entry is a token index (page_stride == token_stride), a block id or a block's address (page_stride == 1, base
/// the way from there to key or value), and t the token inside the page.
struct Plane {
    char* base;
    i64 page_stride;
    i64 token_stride;
    i64 head_stride;
};

/// Of a layout that splits axes: from one piece of a row's elements, or of a page's tokens, to the next. Else 0.
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
    const void* scales;   // as entries, of the scale blocks: where entries are addresses and the cache has scales
    Indices rowstarts;
    Indices row_index;
    i64 row_stride;  // in entries
};

/// How many keys sequence b has, m:
///     starts given:  starts[b + 1] - starts[b]
///     counts given:  counts[b]
///     last given:    (pages - 1) * page_tokens + last[b], pages = page_starts[b + 1] - page_starts[b]; 0 without pages
/// One of the three is, but for Merge, which has no keys.
struct KeyCounts {
    Indices starts;  // (B+1); the mask's columns, packed keys and token tables begin at starts[b], too
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

/// Work for store (new tokens begin..end-1 of the sequence) and load (positions begin..end-1), over kv heads.
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
    KeyCounts keys;   // new tokens are the last of them
    Indices slots;    // (S), where given: row i goes there, whatever the table says; below 0: nowhere
    i64 slot_tokens;  // such a slot s is token s % slot_tokens of block s / slot_tokens; 0: it is a token of the cache
};

struct LoadArgs {
    Cache cache;
    Pieces key_pieces, value_pieces;
    Table table;
    // T1 out, row = kvstarts[b] + t, head = h * num_repeat + r. Either base may be null: not wanted
    Rows key, value;
    KeyCounts keys;
    i64 num_repeat;
};

/// Work for attend: query rows row_begin..row_end-1 of one sequence (new tokens, 0-based in the sequence), kv heads
/// head_begin..head_end-1 (each with its kGroup query heads), chunks chunk_begin..chunk_end-1 of the keys.
/// partial < 0: these are all the chunks; merge them as you go and write output and lse.
/// partial >= 0: write each chunk's (acc, max, sum) to
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

/// What scores, and the keys that rows see, depend on beside the tensors with rows of keys and queries. The runtime
/// fills in what a spec's rules have in generator/score_rules.h.
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

/// Work for merge: output tokens and query heads, and where their parts lie. Strides are in elements of the partial
/// type (acc) and in floats (max, sum):  part p, token i, head h  at  acc + p*acc_part + (i-begin)*acc_token + ...
struct MergeItem {
    i64 token_begin, token_end;
    i64 head_begin, head_end;
    i64 parts;
    i64 acc, acc_part, acc_token, acc_head;
    i64 stat, stat_part, stat_token, stat_head;
};

struct MergeArgs {
    const char* acc;   // Partial: acc of a part, not divided by sum
    const float* max;  // a part's running maximum (natural log units), or its lse
    const float*
        sum;      // a part's sum of exp(score - max); null: (acc, max) are finished (output, lse), always so on CUDA
    Rows output;  // T1
    float* lse;   // null: not wanted
    i64 lse_token_stride, lse_head_stride;
    const float* sinks;  // (H), as ScoreArgs has them; of partials, it alone counts them
};

/// One of a relayout's planes: at the first layer and head to copy, and from a layer to the next.
struct LayerPlane {
    Plane plane;
    i64 layer_stride;
};

/// A cache that a relayout copies from or to. Entries of run r in layer l are entries[l * layer_entries + r].
struct RelayoutSide {
    LayerPlane key, value, key_scale, value_scale;
    Pieces key_pieces, value_pieces;
    const i64* entries;
    const i64* scales;  // as entries, of the scale blocks: where they have addresses of their own; else entries
    i64 layer_entries;  // 0 where all layers have the same
    i64 token_step;     // from a token of a run to the next one
};

/// `count` tokens of one sequence that one entry of either cache's table stands for, and the first one's number there.
struct TokenRun {
    i64 from_token, to_token;
    i64 count;
};

struct RelayoutArgs {
    RelayoutSide from, to;
    const TokenRun* runs;
    i64 num_kv_heads;
    i64 streams;  // not 0: what is written is too much for the machine's caches
};

/// Work for relayout: runs, and layers counted from the first to copy.
struct RelayoutItem {
    i64 run_begin, run_end;
    i64 layer_begin, layer_end;
};

// A CPU program is one function, extern "C", whose name is kvjit_ and the program's: kvjit_attend_decode. It takes a
// pointer to its arguments and one to an item, does the item's work and returns nothing.

// ---- CUDA -----------------------------------------------------------------------------------------------------------
// A program is one kernel, of the same name, whose only parameter is one of the structs below, by value. All arrays lie
// on the device. The grid is sized by upper bounds that the host knows; blocks find their work from the index arrays
// and return where there is none, so that a captured graph serves all lengths within the bounds.

/// What a batch may break: common/batch_rules.h has the rules, runtime/src/check/rule_text.cc their sentences.
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
    kNoScaleAddress,  // the same of scale blocks, in this order
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
    i64 sequence;  // -1: of none
    i64 index;     // in the array, or in the row of a table that has rows
    i64 value, limit;
    i64 detail = 0;  // one number more for the rule's sentence
    i64 row = -1;    // of the table; -1: it has none
    i64 layer = -1;  // on the device: whose table or slots were looked at; -1: those of all
};

/// What addresses of blocks must agree with.
struct BlockMemory {
    i64 alignment;  // of an address
    i64 bytes;      // of a block
};

/// Index arrays, and what they must agree with. What is no limit is kNoLimit.
struct CheckedBatch {
    i64 batch_size;  // not 0
    Indices seqstarts;
    KeyCounts keys;                  // none given: Merge, which has no keys
    Indices start_pos;               // null: new tokens begin where the keys before them end
    bool stores;                     // new tokens need slots
    i64 max_seqlen, max_kvlen;       // 0: unknown
    i64 most_tokens, most_keys;      // S and K whose tensors have bytes that fit 64 bits
    i64 window_left;                 // keys that a row sees before its position
    i64 num_slots;                   // of the cache: tokens, or blocks where entries are blocks
    i64 block_tokens;                // of a block: page_size, or the most that a sequence may have; else 0
    BlockMemory codes, scales;       // where entries are addresses; scales.bytes 0: there are none
    Indices slots;                   // StoreArgs'
    i64 slot_rows;                   // S, at most: of those slots
    i64 layers;                      // that the table and the slots have rows for; 1 where they serve all
    i64 layer_entries, layer_slots;  // from one layer's to the next's; 0 where they serve all
    Table table;
    i64 table_keys;               // K, at most: of a table of tokens
    i64 table_entries;            // all, of a table with rowstarts
    i64 table_rows, row_entries;  // of one without
};

/// The first fault that was found. count 0: none, and the rest means nothing.
struct Fault {
    unsigned count;
    Finding found;
};

/// Grid (x): any number of blocks of kTokenWarps warps. Only the first fault is kept: the one that finds fault->count
/// 0.
struct CudaCheckArgs {
    CheckedBatch batch;
    i64 query_rows, key_rows;  // that the tensors have, or kNoLimit
    bool entries;              // check these too, and where new tokens are stored
    i64 blocks;                // gridDim.x
    Fault* fault;
};

/// What each launch of a run knows of its batch.
struct Launch {
    i64 batch_size;
    i64 num_kv_heads;
    i64 first_slot;         // 0; 1 where entries are addresses: there is no block at 0
    i64 num_slots;          // extent of what table entries count: tokens, or blocks where a page is a block
    i64 slots_of_token;     // 1, or 0 where slots are blocks
    i64 block_tokens;       // tokens of such a block, else kNoLimit
    const unsigned* fault;  // Fault::count; not null and not 0: return at once
};

/// Grid (x): kTokenWarps warps a block, a warp for each (new token, kv head, key or value), in that order of digits.
struct CudaStoreArgs {
    Launch launch;
    StoreArgs store;
};

/// Grid (x): as store's, over (position of the packed output, kv head, key or value).
struct CudaLoadArgs {
    Launch launch;
    LoadArgs load;
};

/// Query rows of a kv head are packed: row r of sequence b is new token r / kGroup, query head kv_head*kGroup + r %
/// kGroup. Decode takes the sequences of up to kDecodeTokens new tokens, prefill the others.
///     decode   grid x: (sequence, kv head, tile of rows), y: split. Split s sees keys s*split_keys and the split_keys
///              - 1 after it, or its part of the tile's keys
///     prefill  grid x: tile of rows counted over all sequences, the last first, y: kv head
/// Where a tile has several splits, each keeps row r's partial, as AttendItem has it, at
///     partials + ((x * splits + split) * kDecodeTileRows + r) * kPartialStride,  r counted in the tile
/// and the last block of the tile to finish merges them.
struct CudaAttendArgs {
    Launch launch;
    AttendArgs attend;
    i64 split_keys;      // decode: a multiple of kSplitUnit; 0: a tile's keys in up to `splits` parts
    i64 least_split;     // decode: keys of such a part, at least, but for the last; a multiple of kSplitUnit
    i64 splits;          // decode: gridDim.y; with 1, partials and counters are not used
    unsigned* counters;  // decode: (gridDim.x), 0 before and after each run: arrived splits of a tile
};

/// Grid (x): a block of kTokenWarps warps for each (layer, run, key or value), in that order of digits.
struct CudaRelayoutArgs {
    RelayoutArgs relayout;
    i64 runs;
};

/// Grid (x): a warp for each (token, query head) of the item. Tokens from seqstarts[batch_size] on are left alone.
struct CudaMergeArgs {
    Launch launch;
    MergeArgs merge;
    MergeItem item;  // all rows and heads of the output tensor
    Indices seqstarts;
};

}  // namespace kvjit::abi

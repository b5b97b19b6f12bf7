// What kvjit must compute (docs/semantics.md, sections 2 to 6): plain loops, attention in double. Shares no code with
// the library, its generator or its templates.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kvjit/kvjit.h"
#include "oracle/elements.h"
#include "oracle/layout.h"

namespace kvjit::oracle {

/// One call's numbers. Names and meanings are those of kvjit_spec and kvjit_batch.
struct Problem {
    kvjit_spec spec;
    std::int64_t num_heads = 1;
    std::int64_t num_kv_heads = 1;
    std::int64_t num_layers = 1;
    std::int64_t layer = 0;
    std::int64_t decoding_batches = 0;
    std::int64_t num_repeat = 1;
    float softmax_scale = 0;        // 0: 1/sqrt(head_dim)
    std::int64_t window_left = -1;  // -1: none
    std::int64_t window_right = -1;
    float soft_cap = 0;                              // 0: none
    bool loads_for_attention = false;                // positions that a window hides from all aren't looked up
    std::vector<std::int64_t> seqstarts, kvstarts;   // (B+1)
    std::vector<std::int64_t> start_pos;             // (B); empty: not given
    std::vector<std::int64_t> cachestarts;           // as the mode has it, row after row
    std::int64_t table_columns = 0;                  // MaxP; page_table and block_table without rowstarts
    std::vector<std::int64_t> rowstarts, row_index;  // empty: not given
    std::vector<std::int64_t> store_slots;           // (S), where new tokens go; empty: as the table has it
    std::int64_t block_tokens = 0;                   // of a block that those number slots through; 0: no blocks
    std::vector<float> slopes;                       // empty: not given
    std::vector<float> sinks;                        // (H); empty: none

    std::int64_t batch_size() const { return static_cast<std::int64_t>(seqstarts.size()) - 1; }
    std::int64_t new_tokens(std::int64_t b) const { return seqstarts[at(b) + 1] - seqstarts[at(b)]; }
    std::int64_t kv_tokens(std::int64_t b) const { return kvstarts[at(b) + 1] - kvstarts[at(b)]; }
    static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
};

/// Where a position lives: a token index of axis T, or a block of axis N and a token inside it.
struct Slot {
    std::int64_t block;
    std::int64_t token;
};
Slot slot_of(const Problem& problem, std::int64_t b, std::int64_t position);

/// Where new token i of sequence b goes; nothing: nowhere.
std::optional<Slot> place_of_new(const Problem& problem, std::int64_t b, std::int64_t i);

/// Codes, or scales, of keys and values: a tensor for both; or two, where the layout has no axis 2; or blocks that lie
/// anywhere, where the mode is block_pointers. The problem's table has their numbers then. Empty: no scales.
struct CacheMemory {
    std::vector<Strided> tensors;

    CacheMemory() = default;
    CacheMemory(const Strided& both) {
        if (both.present()) tensors.push_back(both);
    }
    explicit CacheMemory(std::vector<Strided> all) : tensors(std::move(all)) {}
    bool present() const { return !tensors.empty(); }
    int dtype() const { return tensors.front().dtype; }
};

/// A row's elements, bytes of two where they are int4: element i lies i / piece pieces and i % piece elements further.
struct CacheRow {
    std::byte* first;
    int dtype;
    std::int64_t piece, piece_stride, element_stride;  // in elements

    std::byte* at(std::int64_t i) const {
        const std::int64_t further =
            piece == 1 ? i * piece_stride : i / piece * piece_stride + i % piece * element_stride;
        return first + further * static_cast<std::int64_t>(bytes_of(dtype));
    }
};
/// Of key (0) or value (1), a slot and a kv head, by the spec's axes.
CacheRow cache_row(const Problem& problem, const CacheMemory& cache, int key_or_value, Slot slot, std::int64_t head);

/// One head's row in the cache, and its scales, if it has some.
struct ScaledRow {
    CacheRow codes, scales;
};
/// Quantises `row`, D numbers of float32, as section 6 says. Of the spec count head_dim, quant_bit and quant_group.
void quantise_row(const kvjit_spec& spec, const std::vector<float>& row, const ScaledRow& to);
/// The D elements of a quantised row: float(code) * float(s), in float32.
std::vector<float> dequantised(const kvjit_spec& spec, const ScaledRow& from);

/// Writes the new keys and values, (S, Hkv, D) of type t1, to their slots.
void oracle_store(const Problem& problem, const Strided& key, const Strided& value, const CacheMemory& cache,
                  const CacheMemory& scale);

/// Keys or values as attention sees them: (K, Hkv, D), each float32 exactly.
using Dense = std::vector<float>;
/// Positions 0..m-1 of each sequence, dequantised; NaN where they aren't looked up.
Dense oracle_load(const Problem& problem, int key_or_value, const CacheMemory& cache, const CacheMemory& scale);
/// The same for MultiHeadAttention's own key or value tensor.
Dense oracle_dense(const Problem& problem, const Strided& tensor);

/// Whether new token i of sequence b may see key j, whatever a mask says.
bool in_sight(const Problem& problem, std::int64_t b, std::int64_t i, std::int64_t j);

/// (S, H, D) and (S, H).
struct Attended {
    std::vector<double> output;
    std::vector<double> lse;
};
Attended oracle_attend(const Problem& problem, const Strided& query, const Dense& key, const Dense& value,
                       const Strided& mask);

/// Parts, each (S, H, D) and (S, H), as one. A part whose lse is infinite has weight 0. sinks: (H), or empty.
Attended oracle_merge(const std::vector<Attended>& parts, std::int64_t head_dim, const std::vector<float>& sinks = {});

}  // namespace kvjit::oracle

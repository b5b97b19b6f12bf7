// The index arrays of a call, as numbers that its owner may change, and the batch that points to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "calls/rng.h"
#include "kvjit/kvjit.h"
#include "oracle/layout.h"

namespace kvjit::calls {

using Numbers = std::vector<std::int64_t>;

/// Throws std::runtime_error with kvjit's message.
kvjit_spec parse_spec(const std::string& text);

/// What a call is of. Sequence b brings tokens[b] new tokens, the last of its keys[b] keys.
struct CallShape {
    kvjit_spec spec;
    Numbers tokens, keys;
    std::int64_t num_kv_heads = 2;  // query heads follow from it and the spec's group
    std::int64_t num_layers = 1;
};
/// Sequences that are all alike.
CallShape even_shape(const std::string& spec, std::int64_t sequences, std::int64_t tokens, std::int64_t keys);

/// Gives the address at which kernels shall find these bytes.
using Place = std::function<const void*(const void* data, std::size_t bytes)>;

/// Blocks at addresses, in a memory with room for at least 64 of them and for some bytes around them.
struct BlockMemory {
    std::int64_t bytes = 0;  // of a block
    std::vector<std::byte> memory;

    void make(std::int64_t block_bytes, std::int64_t count);
    /// Copies the memory; what is to be added to addresses in it. `place` gives as many bytes as it gets.
    std::int64_t copy(const Place& place) const;
    std::int64_t address(std::int64_t block) const;
};

/// Movable. Where an array has 64-bit elements the batch points to its numbers, so that one may be changed in place;
/// after resizing an array, and after any change of one with 32-bit elements, call bind().
struct IndexArrays {
    kvjit_spec spec;
    Numbers seqstarts, kvstarts, start_pos;
    Numbers kvlens, last_page_len, store_slots, rowstarts, row_index;  // empty: not given
    Numbers table, scales;                                             // cachestarts, scalestarts
    std::vector<float> slopes;
    BlockMemory code_blocks, scale_blocks;  // of block_pointers
    kvjit_batch batch;

    /// Every token has a place of its own, as place_tokens() gives it.
    explicit IndexArrays(const CallShape& shape);
    IndexArrays(IndexArrays&&) = default;
    IndexArrays(const IndexArrays&) = delete;

    /// Points the batch to the arrays; arrays that are empty become null.
    void bind();
    /// The same for arrays that kernels find elsewhere: in guarded memory, or on a device.
    void bind(const Place& place);
    /// Blocks at addresses are copied to a place, and the tables have addresses there from then on.
    void move_blocks(const Place& place);

    /// seqstarts, kvstarts, start_pos. The table is the caller's to mend.
    void set_lengths(const Numbers& tokens, const Numbers& keys);
    void set_table(Numbers entries, const Numbers& shape);
    /// Of the table's shape.
    void set_scales(Numbers entries);
    void set_slots(Numbers slots, const Numbers& shape);

    /// A place for each page, token or sequence, as the mode has it: the cache's last places first, or any as `rng` has
    /// them. The cache has `spare` places more. Rows of the table are as long as the longest sequence needs, or
    /// batch.max_kvlen if that is more; what no key needs is `unused`. Sets max_tokens and num_blocks.
    void place_tokens(Rng* rng = nullptr, std::int64_t spare = 0, std::int64_t unused = -1);

    /// Keys of sequence b, and its new tokens.
    std::int64_t keys(std::int64_t b) const;
    std::int64_t tokens(std::int64_t b) const;

private:
    std::int64_t block_bytes(const oracle::RowType& row) const;

    std::vector<std::vector<std::int32_t>> narrow_;  // arrays with 32-bit elements
};

/// Row-major.
kvjit_tensor dense_tensor(const void* data, int dtype, const Numbers& shape);

}  // namespace kvjit::calls

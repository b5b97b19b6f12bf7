// One side of a relayout: a cache, the tokens that it has, and a batch that says so. Where a token's bytes lie is
// computed from the order of axes here, by nothing that the library has a part in.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "call/oracle.h"
#include "conformance/case.h"
#include "conformance/placed.h"
#include "kvjit/kvjit.h"
#include "support/rng.h"

namespace kvjit::test {

/// A sequence: positions past..past+fresh-1 are those that may be copied.
struct Sequence {
    std::int64_t past, fresh;

    std::int64_t keys() const { return past + fresh; }
};

/// How keys and values of a tensor with both lie to one another.
enum class Parts {
    kAsLaid,       // as the axes say
    kValuesFirst,  // the way from a key to its value goes backwards
    kTwoHalves     // all keys, then all values, whatever the layout
};

struct SideCase {
    kvjit_spec spec;  // of op KeyValueCache
    std::int64_t num_kv_heads = 1;
    std::int64_t num_layers = 1;
    bool layer_tables = false;
    bool shares = false;  // pages of several sequences are one
    TableRows rows = TableRows::kPadded;
    KeysBy keys_by = KeysBy::kStarts;
    Given given = Given::kAll;
    Guard guard = Guard::kAfter;
    Spread spread = Spread::kDense, scale_spread = Spread::kDense;  // of codes, of scales
    Parts parts = Parts::kAsLaid;
    bool repeats_heads = false;  // one head's memory stands for all, as views of it come out: a source only
};

/// One head's row in a cache, and its scales: elements that are neighbours.
struct CodeRow {
    std::byte *codes, *scales;
    int dtype, scale_dtype;

    /// As the oracle of the operators has it.
    ScaledRow scaled() const { return {whole(codes, dtype), whole(scales, scale_dtype)}; }

private:
    static CacheRow whole(std::byte* first, int type) {
        return {first, type, std::numeric_limits<std::int64_t>::max(), 0, 1};
    }
};

/// Entries of table rows, numbers of tokens or blocks, by layer (the first stands for all, where there is one table),
/// sequence and page.
struct Entries {
    std::vector<std::vector<std::vector<std::int64_t>>> of;
    std::int64_t end = 0;      // past all that they reach
    std::int64_t longest = 0;  // sequence's tokens

    /// Those of sequences first..first+count-1 alone, in the same cache.
    Entries part(std::size_t first, std::size_t count) const;
};

/// No two sequences, and no two layers of one plane, share anything, but where the case says so.
Entries scatter(const SideCase& which, const std::vector<Sequence>& sequences, Rng& rng);

/// The memory that entries stand for.
class SideCache {
public:
    SideCache(const SideCase& which, const Entries& entries, Rng& rng);

    kvjit_tensors tensors() const;
    std::int64_t max_tokens() const { return max_tokens_; }
    std::int64_t num_blocks() const { return num_blocks_; }
    /// `scales`: of a block of scales.
    std::intptr_t block_address(std::int64_t block, bool scales) const;

    /// The row of a slot's key (0) or value (1): `block` for modes with blocks.
    CodeRow row(std::int64_t block, std::int64_t token, std::int64_t layer, int part, std::int64_t head) const;

    /// Any bytes: what may be copied as it is.
    void fill_bytes(Rng& rng);
    /// Numbers that can be read back, of many magnitudes; `odd`: infinities and NaN among them, and among scales.
    void fill_numbers(Rng& rng, bool odd);

    std::vector<std::vector<std::byte>> snapshot() const;
    /// Element types of the tensors of a snapshot.
    std::vector<int> dtypes() const;
    void restore(const std::vector<std::vector<std::byte>>& bytes);
    /// Nothing around the memory was written.
    bool is_fenced() const;

private:
    struct Tensor {
        Placed placed;
        std::string axes;
        bool flipped = false;    // its first element is that of values
        std::int64_t heads = 0;  // for which its one head stands; 0: each has memory of its own

        kvjit_tensor view() const;
        std::byte* at(std::int64_t block, std::int64_t token, std::int64_t layer, int part, std::int64_t head) const;
    };
    bool repeats_heads() const;
    std::vector<std::int64_t> shape_of(std::string_view axes, std::int64_t row) const;
    Tensor tensor(const RowType& row, const std::string& axes, Spread spread, Rng& rng) const;
    std::vector<Tensor> tensors_of(const RowType& row, Spread spread, Rng& rng) const;
    std::byte* place(const std::vector<Tensor>& tensors, std::int64_t block, std::int64_t token, std::int64_t layer,
                     int part, std::int64_t head) const;
    template <class Visit>
    void each_row(const Tensor& tensor, Visit visit) const;

    SideCase which_;
    std::int64_t max_tokens_ = 0, num_blocks_ = 0;
    std::vector<Tensor> codes_, scales_;  // of both, or of keys, then values, or of blocks
};

/// Sequences in such a cache.
class Side {
public:
    Side(const SideCase& which, std::vector<Sequence> sequences, Entries entries, std::shared_ptr<SideCache> cache,
         Rng& rng);
    /// In a cache of its own.
    Side(const SideCase& which, const std::vector<Sequence>& sequences, Rng& rng);

    const SideCase& which() const { return which_; }
    const std::vector<Sequence>& sequences() const { return sequences_; }
    SideCache& cache() { return *cache_; }
    const SideCache& cache() const { return *cache_; }
    /// Points into the side.
    kvjit_batch batch() const;

    CodeRow row(std::size_t sequence, std::int64_t position, std::int64_t layer, int part, std::int64_t head) const;

private:
    Side(const SideCase& which, const std::vector<Sequence>& sequences, const Entries& entries, Rng& rng);
    void make_starts();
    void make_rows(Rng& rng);
    void make_tables(Rng& rng);
    std::vector<std::int64_t> table_of(std::size_t layer) const;
    Placed integers(const std::vector<std::int64_t>& values) const;
    Placed table(const std::vector<std::int64_t>& numbers, std::vector<std::int64_t> strides) const;

    SideCase which_;
    std::vector<Sequence> sequences_;
    Entries entries_;
    std::shared_ptr<SideCache> cache_;
    std::vector<std::int64_t> row_begins_, table_shape_;
    Placed seqstarts_, kvstarts_, kvlens_, last_page_len_, start_pos_, cachestarts_, scalestarts_, rowstarts_,
        row_index_;
};

}  // namespace kvjit::test

// One random call of store or load: sequences, tables, tensors between guard pages, and how the work is cut.
#pragma once

#include <functional>
#include <vector>

#include "programs.h"
#include "support/guarded_buffer.h"
#include "support/rng.h"

namespace kvjit::test {

/// Rows of bytes on two axes, either of which may be the inner one, with gaps.
struct Grid {
    abi::i64 rows = 0, columns = 0, row_stride = 0, column_stride = 0, row_bytes = 0;

    abi::i64 at(abi::i64 row, abi::i64 column) const { return row * row_stride + column * column_stride; }
    abi::i64 bytes() const { return rows && columns ? at(rows - 1, columns - 1) + row_bytes : 0; }
};

/// Key and value of one tensor, which have one shape.
struct Pair {
    Grid grid;
    GuardedBuffer buffer[2];

    std::byte* row(int kv, abi::i64 row, abi::i64 column) { return buffer[kv].data() + grid.at(row, column); }
    abi::Rows rows(int kv) { return {reinterpret_cast<char*>(buffer[kv].data()), grid.row_stride, grid.column_stride}; }
};

struct CacheCall {
    CacheCall(const CachePrograms& cache_programs, std::uint64_t seed);

    struct Sequence {
        abi::i64 start, count;  // its new tokens lie at start..start+count-1
        abi::i64 end() const { return start + count; }
    };

    abi::Cache planes();
    abi::Table table() const;
    /// Each sequence's tokens (new ones, or all) and heads, cut in two at random places.
    void for_each_item(bool new_tokens, const std::function<void(const abi::TokenItem&)>& f);

    const CachePrograms& programs;
    Rng rng;
    abi::i64 heads = 0, num_repeat = 1;
    std::vector<Sequence> sequences;
    std::vector<abi::i64> seqstarts, kvstarts, start_pos;
    std::vector<std::vector<abi::i64>> slots;  // slots[b][t]: token index in the whole cache
    Pair cache, scale, input, output;

private:
    void make_sequences();
    void make_pages();
    void make_table(const std::vector<std::vector<abi::i64>>& rows);
    void make_tensors();
    void fill_input(std::byte* row);

    Guard guard_;
    abi::i64 slot_count_ = 0, row_stride_ = 0;
    bool csr_ = false;
    std::vector<abi::i64> rowstarts_, row_index_;
    GuardedBuffer entries_;
};

}  // namespace kvjit::test

// A small legal batch for each operator and cache mode, to be spoiled in one place at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "generator/spec.h"

namespace kvjit::test {

/// Three sequences: n = 1, 3, 2 and m = 6, 3, 9. H 4, Hkv 2, D 16, pages of 4 tokens, L 2; a block of a sequence
/// has 16. The batch points into the vectors; after resizing one, call bind().
struct BatchCase {
    gen::KernelSpec spec;
    std::vector<std::int64_t> seqstarts{0, 1, 4, 6};
    std::vector<std::int64_t> kvstarts{0, 6, 9, 18};
    std::vector<std::int64_t> start_pos{5, 0, 7};
    std::vector<std::int64_t> table;
    std::vector<std::int32_t> table32;  // the same for index_type=i32
    std::vector<std::int64_t> scales;   // the table of scale blocks, where they have addresses
    std::vector<std::int64_t> rowstarts;
    std::vector<std::int64_t> row_index;
    std::vector<float> slopes;
    std::vector<std::vector<std::int32_t>> narrow;  // the arrays of starts for starts_type=i32
    kvjit_batch batch;

    /// `spec_text` goes over head_dim=16,group=2,t1=f32,page_size=4. The table is a legal one of the spec's mode.
    explicit BatchCase(std::string_view spec_text);
    BatchCase(const BatchCase&) = delete;

    void bind();
    /// Other lengths than the three above. The table is the caller's to mend.
    void set_lengths(std::initializer_list<std::int64_t> n, std::initializer_list<std::int64_t> m);
    void set_table(std::vector<std::int64_t> entries, std::vector<std::int64_t> shape);
    /// The same for `scales`, of the table's shape.
    void set_scales(std::vector<std::int64_t> entries);

    /// Blocks that lie at addresses, all of them in a memory with room for 64 and for some more around them.
    struct Blocks {
        std::int64_t bytes = 0;
        std::vector<std::byte> memory;

        void make(std::int64_t block_bytes);
        std::int64_t address(std::int64_t block) const;
    };
    Blocks code_blocks, scale_blocks;

private:
    void set_block_tables();
};

}  // namespace kvjit::test

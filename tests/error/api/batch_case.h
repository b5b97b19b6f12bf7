// A small legal call for each operator and cache mode, to be spoiled in one place at a time.
#pragma once

#include <string_view>

#include "call/call.h"

namespace kvjit::test {

/// Three sequences: n = 1, 3, 2 and m = 6, 3, 9. H 4, Hkv 2, D 16, pages of 4 tokens, L 2; a block of a sequence
/// has 16.
struct BatchCase : IndexArrays {
    /// `spec_text` goes over head_dim=16,group=2,t1=f32,page_size=4. The table is a legal one of the spec's mode.
    explicit BatchCase(std::string_view spec_text);

private:
    void set_block_tables();
};

/// With tensors exactly as large as needed.
struct TensorsCase : BatchCase, CallTensors {
    std::int64_t layer_idx = 1;
    bool stores = true;  // whether the plan may

    explicit TensorsCase(std::string_view spec_text, Allocate allocate = guarded_memory())
        : BatchCase(spec_text), CallTensors(*this, {6, 18}, std::move(allocate)) {}

    /// Every byte that kernels may reach, blocks at addresses included.
    std::vector<std::byte> snapshot() const;
};

}  // namespace kvjit::test

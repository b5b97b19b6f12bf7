// Splits a batch into work items. Splits change speed only, never a bit of a result (abi.h, kChunk).
#pragma once

#include <cstdint>
#include <vector>

#include "batch/batch_view.h"
#include "common/abi.h"
#include "generator/decode_tokens.h"

namespace kvjit::rt {

/// What one call does, item by item. Items of a stage are independent; stages run in the order of the members.
struct Work {
    std::vector<abi::TokenItem> store;
    std::vector<abi::TokenItem> load;
    std::vector<abi::AttendItem> decode;
    std::vector<abi::AttendItem> prefill;
    std::vector<abi::MergeItem> merge;
    std::int64_t partial_floats = 0;  // workspace that split items write and merge reads
};

/// The numbers of new tokens that sequences of the batch have, of those that decode may take. Precondition: the batch
/// is checked.
gen::TokenCounts tokens_in(const BatchView& batch);

/// What a batch is split for.
struct SplitFor {
    gen::TokenCounts decode_tokens;  // Kernel::decode_tokens
    std::int64_t concurrency;        // how many items the executor runs at once
};

/// Precondition: the batch is checked.
Work split(const BatchView& batch, const SplitFor& use);

}  // namespace kvjit::rt

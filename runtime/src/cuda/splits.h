// Into how many splits a decode's keys go.
#pragma once

#include <cstdint>

namespace kvjit::rt {

struct Splits {
    std::int64_t keys;   // of one split, a multiple of the unit
    std::int64_t count;  // at least 1; count * keys >= max_keys
    std::int64_t least;  // keys of a split, of a sequence shorter than max_keys: it goes into fewer splits
};

/// The fewest splits that keep the GPU within 85% of as busy as it can be; and of long sequences as many more as keep
/// one of them from being all that the GPU still does when the others are done. 1 where there is nothing to win.
///   tiles     blocks without splitting
///   slots     blocks that run at once
///   max_keys  upper bound of a sequence's keys
///   unit      keys are cut at multiples of this
Splits choose_splits(std::int64_t tiles, std::int64_t slots, std::int64_t max_keys, std::int64_t unit);

/// Splits of `keys` keys each, a multiple of the unit, whatever the batch.
Splits fixed_splits(std::int64_t keys, std::int64_t max_keys);

}  // namespace kvjit::rt

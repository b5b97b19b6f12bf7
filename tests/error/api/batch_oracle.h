// Whether a batch is legal, token by token, as docs/semantics.md says it.
#pragma once

#include <string>

#include "batch_case.h"

namespace kvjit::test {

/// Of blocks at addresses, as CUDA targets want it.
inline constexpr std::int64_t kBlockAlignment = 16;

/// For a cache operator and tables of small numbers or of addresses, whose vectors are at least as long as the batch
/// says.
bool is_legal(const BatchCase& c, bool stores);

/// What an error has to name.
struct BatchFault {
    std::string argument;
    std::int64_t value, limit, sequence;
    bool operator==(const BatchFault&) const = default;
};

/// All faults that a full check may tell of: of the starts, rows and positions, or, where these are legal, of entries,
/// and of slots of entries that are legal. None where is_legal.
std::vector<BatchFault> faults_of(const BatchCase& c, bool stores);

}  // namespace kvjit::test

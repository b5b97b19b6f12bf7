// Whether a batch is legal, token by token, as docs/semantics.md says it.
#pragma once

#include "batch_case.h"

namespace kvjit::test {

/// For a cache operator and tables of small numbers, whose vectors are at least as long as the batch says.
bool is_legal(const BatchCase& c, bool stores);

}  // namespace kvjit::test

// One call in memory: every tensor between guard pages, what nothing refers to filled with NaN.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "call/oracle.h"
#include "conformance/case.h"
#include "conformance/placed.h"
#include "kvjit/kvjit.h"

namespace kvjit::test {

/// Move-only. The values (queries, keys, mask, ...) depend on the data seed and the case only, where they lie on the
/// placement seed: two calls that differ in the latter must give the same bits.
struct Call {
    Case which;
    Problem problem;
    std::int64_t max_tokens = 0;
    std::int64_t num_blocks = 0;
    Placed seqstarts, kvstarts, start_pos, cachestarts, rowstarts, row_index;
    Placed scalestarts, kvlens, last_page_len, store_slots;
    Placed query, current_key, current_value, mask, sinks;  // absent where the operator has none
    std::vector<Placed> cache, scale;  // tensors as CacheMemory has them; none where there is no cache, no scales
    Placed key, value;                 // MultiHeadAttention: inputs, KeyValueCache: outputs
    Placed attn_output, lse;

    std::vector<const Placed*> caches() const;
    /// All tensors but the outputs, for checks that nothing else was written.
    std::vector<const Placed*> inputs() const;
    /// attn_output, lse, key and value as far as they are outputs.
    std::vector<const Placed*> outputs() const;
    void remember();
};

/// The cache's tensors, or the scales', for the oracle.
CacheMemory memory_of(const std::vector<Placed>& tensors);

Call make_call(const Case& which, std::uint64_t data_seed, std::uint64_t placement_seed);

/// The structs of the public API for `call`, which must outlive them.
struct Bound {
    kvjit_spec spec;
    kvjit_batch batch;
    kvjit_tensors tensors;
    std::int64_t layer = 0;
};
Bound bind(const Call& call);

/// Spec and numbers of the call, for people.
std::string describe(const Call& call);

}  // namespace kvjit::test

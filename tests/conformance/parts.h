// Parts of attention over keys, which Merge joins.
#pragma once

#include <cstdint>

#include "conformance/call.h"
#include "conformance/run_call.h"
#include "support/rng.h"

namespace kvjit::test {

/// Outputs and lse of `parts` parts of a call with 64 elements a head.
struct Parts {
    Placed outputs, lses;

    Parts(const Problem& problem, std::int64_t parts) {
        const std::int64_t tokens = problem.seqstarts.back(), heads = problem.num_heads;
        outputs = Placed(problem.spec.t1, {parts, tokens, heads, 64}, {tokens * heads * 64, heads * 64, 64, 1},
                         Guard::kAfter);
        lses = Placed(KVJIT_F32, {parts, tokens, heads}, {tokens * heads, heads, 1}, Guard::kAfter);
    }

    void draw(std::uint64_t seed) {
        Rng rng(seed);
        outputs.fill([&] { return rng.normal(); });
        lses.fill([&] { return rng.normal(); });
    }

    /// Merge of all parts into the outputs of `merged`.
    Bound merge_into(const Call& merged) const {
        Bound merge = bind(merged);
        const kvjit_spec attention = merge.spec;
        kvjit_spec_init(&merge.spec);
        merge.spec.op = KVJIT_OP_MERGE;
        merge.spec.head_dim = 64;
        merge.spec.t1 = attention.t1;
        merge.spec.has_sinks = attention.has_sinks;
        merge.tensors.query = merge.tensors.key = merge.tensors.value = {};
        merge.tensors.partial_output = outputs.view();
        merge.tensors.partial_lse = lses.view();
        return merge;
    }
};

}  // namespace kvjit::test

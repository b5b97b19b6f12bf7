// A relayout as a test has it: what it copies by the oracle, and by the library.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/relayout_side.h"
#include "conformance/run_call.h"
#include "kvjit/kvjit.h"

namespace kvjit::test {

/// Sides may share a cache.
struct RelayoutCall {
    Side *from, *to;
    kvjit_relayout numbers;  // without the batches
    std::int64_t from_layer = 0, to_layer = 0;
    RunOptions run = {};

    RelayoutCall(Side& source, Side& destination) : from(&source), to(&destination) { kvjit_relayout_init(&numbers); }
    std::int64_t num_kv_heads() const;
    std::int64_t num_layers() const;
};

/// Positions of sequence b that a side takes part with, in order.
std::vector<std::int64_t> positions_of(const Sequence& sequence, std::int64_t ranks, std::int64_t rank);

/// Of caches of these specs, of op KeyValueCache.
kvjit_spec relayout_spec_of(const kvjit_spec& from, const kvjit_spec& to);

/// Whether rows are copied as they are.
bool are_alike(const kvjit_spec& from, const kvjit_spec& to);

/// Copies by plain loops (docs/semantics.md, sections 4 to 7).
void oracle_relayout(const RelayoutCall& call);

/// A plan of the call's batches.
class RelayoutPlan {
public:
    explicit RelayoutPlan(const RelayoutCall& call);

    /// Empty, or kvjit's error, of making the plan too.
    std::string run(const RelayoutCall& call) const;
    std::string describe() const;

private:
    std::shared_ptr<OrderedExecutor> executor_;  // outlives the plan
    std::unique_ptr<kvjit_plan, PlanRelease> plan_;
    std::string error_;
};

/// Runs it and compares all bytes of both caches with what the oracle makes of them. Empty if all is well.
std::string judge_relayout(const RelayoutCall& call);

std::string describe(const RelayoutCall& call);

}  // namespace kvjit::test

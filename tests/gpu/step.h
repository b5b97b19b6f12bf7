// One step of an engine over a paged cache: all the arrays of a MultiHeadCacheAttention call, whose lengths, tables and
// numbers can be drawn anew in place, as an engine rewrites them between steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "conformance/oracle.h"
#include "gpu/array.h"
#include "gpu/machine.h"
#include "kvjit/kvjit.hpp"
#include "support/rng.h"

namespace kvjit::test {

/// Upper bounds, for which memory is there.
struct StepLimits {
    std::int64_t sequences = 3;
    std::int64_t new_tokens = 1;  // of a sequence
    std::int64_t keys = 600;      // of a sequence, the new tokens' included
};

/// The bytes of everything that a call may write.
struct Written {
    std::vector<std::byte> output, lse, cache, scale;
    bool operator==(const Written&) const = default;
};

/// Not movable: the batch points into it.
class Step {
public:
    /// `spec`: of MultiHeadCacheAttention with page_table or block_table. Numbers are drawn with seed 1.
    Step(Machine& machine, const std::string& spec, StepLimits limits);
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

    /// New lengths within the limits, tables, queries, keys, values and past; then as reset().
    void draw(std::uint64_t seed);
    /// The cache as it was drawn, outputs of NaN.
    void reset();
    /// Table entry p of sequence b, until the next draw.
    void set_entry(std::int64_t b, std::int64_t p, std::int64_t entry);
    /// A step of sequence b alone, with copies of everything that it sees.
    std::unique_ptr<Step> alone(std::int64_t b) const;

    Machine& machine() const { return machine_; }
    const KernelSpec& spec() const { return spec_; }
    const Problem& problem() const { return problem_; }
    /// Arrays in the machine's memory; valid as long as the step, whatever is drawn.
    Batch batch() const;
    /// The same with arrays in host memory, for plan_options.host_batch.
    Batch host_batch() const;
    Tensors tensors() const;

    /// What the machine's memory holds; wait for the runs first.
    Written written() const;
    /// Empty if `written` is what the call must write (docs/semantics.md) and nothing else; else what differs.
    std::string judge(const Written& written) const;
    /// Bytes of output and lse that belong to sequence b.
    std::vector<std::byte> rows_of(const Written& written, std::int64_t b) const;

private:
    void draw_lengths(Rng& rng);
    void draw_table(Rng& rng);
    void draw_numbers(Rng& rng);
    /// Of an array's bytes those that belong to the new tokens of sequence b.
    std::span<const std::byte> rows_in(const Array& array, std::span<const std::byte> bytes, std::int64_t b) const;
    std::string judge_outputs(const Written& written, const Dense& key, const Dense& value) const;
    std::vector<std::int64_t> cache_shape(std::int64_t row_elements) const;
    void upload();

    Machine& machine_;
    KernelSpec spec_;
    StepLimits limits_;
    Problem problem_;  // the lengths and the table as the oracle has them
    Array seqstarts_, kvstarts_, start_pos_, table_;
    Array query_, key_, value_, cache_, scale_, output_, lse_;
};

}  // namespace kvjit::test

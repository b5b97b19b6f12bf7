// One step of an engine over a paged cache: a MultiHeadCacheAttention call in the machine's memory, whose lengths,
// tables and numbers can be drawn anew in place, as an engine rewrites them between steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "call/call.h"
#include "call/oracle.h"
#include "gpu/device_copy.h"
#include "gpu/machine.h"

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

class Step {
public:
    /// `spec`: of MultiHeadCacheAttention with page_table or block_table. Numbers are drawn with seed 1.
    Step(Machine& machine, const std::string& spec, StepLimits limits);

    /// New lengths within the limits, tables, queries, keys, values and past; then as reset().
    void draw(std::uint64_t seed);
    /// The cache as it was drawn, outputs of NaN.
    void reset();
    /// Table entry p of sequence b, until the next draw. Returns the one that it replaces.
    std::int64_t set_entry(std::int64_t b, std::int64_t p, std::int64_t entry);
    /// A step of sequence b alone, with copies of everything that it sees.
    std::unique_ptr<Step> alone(std::int64_t b) const;

    Machine& machine() const { return machine_; }
    const kvjit_spec& spec() const { return call_.spec; }
    /// The lengths and the table as the oracle has them.
    Problem problem() const;
    /// Arrays in the machine's memory; valid as long as the step, whatever is drawn.
    const kvjit_batch& batch() const { return batch_; }
    /// The same with arrays in host memory, for plan_options.host_batch.
    const kvjit_batch& host_batch() const { return call_.batch; }
    kvjit_tensors tensors() const;

    /// What the machine's memory holds; wait for the runs first.
    Written written() const;
    /// Empty if `written` is what the call must write (docs/semantics.md) and nothing else; else what differs.
    std::string judge(const Written& written) const;
    /// Bytes of output and lse that belong to sequence b.
    std::vector<std::byte> rows_of(const Written& written, std::int64_t b) const;

private:
    void draw_lengths(Rng& rng);
    /// Which of the call's pieces of memory a tensor lies in.
    std::size_t piece_of(const kvjit_tensor& tensor) const;
    std::vector<std::byte> download(const kvjit_tensor& tensor) const;
    /// Of a tensor's bytes those that belong to the new tokens of sequence b.
    std::span<const std::byte> rows_in(const kvjit_tensor& tensor, std::span<const std::byte> bytes,
                                       std::int64_t b) const;
    std::string judge_outputs(const Written& written, const Dense& key, const Dense& value) const;
    void upload_arrays();

    Machine& machine_;
    std::string text_;  // of the spec
    StepLimits limits_;
    ApiCall call_;  // in host memory: what is drawn, and outputs of NaN
    kvjit_batch batch_;
    DeviceCopy arrays_, tensors_;
};

}  // namespace kvjit::test

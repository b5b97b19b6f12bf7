// A batch of one layer whose arrays the recorder has copied to its own memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "generator/spec.h"
#include "plan.h"

namespace kvjit::rt {

class HostBatch {
public:
    /// Copies the arrays of `batch`, as far as `layer_idx` has some, by the plan's means. Precondition: the batch was
    /// planned. Errors: those of Plan::download.
    static gen::Result<HostBatch> copy(Plan& plan, const gen::KernelSpec& spec, const kvjit_batch& batch,
                                       const std::vector<float>& slopes, std::int64_t layer_idx);

    /// The batch, with one layer's tables, which are dense.
    const kvjit_batch& batch() const { return batch_; }
    const gen::KernelSpec& spec() const { return spec_; }
    const std::vector<float>& slopes() const { return slopes_; }
    /// Bytes of one of kArrays or kTables, by its name; empty: it isn't given.
    const std::vector<std::byte>& bytes(std::string_view name) const;
    /// Elements of a table.
    std::vector<std::int64_t> entries(std::string_view name) const;

private:
    HostBatch() = default;
    gen::Result<void> copy_array(Plan& plan, std::string_view name, const void* array, std::int64_t count);
    gen::Result<void> copy_table(Plan& plan, std::string_view name, kvjit_tensor& table, int rank, std::int64_t layer);

    gen::KernelSpec spec_;
    kvjit_batch batch_;
    std::vector<float> slopes_;
    std::map<std::string_view, std::vector<std::byte>> copies_;
};

}  // namespace kvjit::rt

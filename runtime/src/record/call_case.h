// One call as a recording's metadata and tensors: what goes in first, then what came out.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <vector>

#include "generator/operator.h"
#include "record/case_file.h"
#include "record/gather.h"
#include "record/host_batch.h"
#include "record/slots.h"

namespace kvjit::rt {

/// What the recording says of the plan.
struct CasePlan {
    std::string target;
    bool stores_nothing = false;
    std::int64_t split_keys = 0, prefill_split_keys = 0;
};

class CallCase {
public:
    /// Lays the file out; reads no element of a tensor. `host` and the tensors outlive it. The error says what is wrong
    /// with the call. Precondition: the plan has checked the tensors, check_batch the batch.
    static std::expected<CallCase, std::string> make(const HostBatch& host, const CasePlan& plan,
                                                     const kvjit_tensors& tensors, std::int64_t layer_idx);

    std::int64_t bytes() const { return file_.bytes(); }
    /// Before the call, and after it: appends the header with all inputs, then all results.
    gen::Result<void> read_inputs(Plan& plan, std::string& to) const;
    gen::Result<void> read_results(Plan& plan, std::string& to) const;

private:
    struct Piece {
        std::string name;
        kvjit_dtype dtype;
        Gather from;
        std::vector<std::byte> bytes;  // of an array that the recorder has; else empty
    };

    CallCase(const HostBatch& host, const kvjit_tensors& tensors, std::int64_t layer_idx);

    void set_metadata(const CasePlan& plan);
    void add_arrays();
    void add_table(std::string_view name, const kvjit_tensor& like, const std::vector<std::int64_t>& entries);
    void add_tables();
    void add_blocks();
    std::expected<void, std::string> add_tensors();
    std::expected<Gather, std::string> rows_of(const gen::OperatorTensor& tensor) const;
    Gather cache_part(const gen::OperatorTensor& tensor) const;
    /// Says how the tensor's elements lie, or that the recording's lie otherwise.
    void set_strides(const std::string& name, const Gather& from, std::int64_t element_bytes, bool may_keep);
    void declare();
    static gen::Result<void> read(Plan& plan, const std::vector<Piece>& pieces, std::string& to);

    const HostBatch* host_;
    const kvjit_tensors* tensors_;
    std::int64_t layer_idx_;
    bool stores_;  // this run
    SlotUse slots_;
    CaseFile file_;
    std::vector<Piece> inputs_, results_;
};

}  // namespace kvjit::rt

// One recorded call, as kvjit_engine_record writes it (docs/recording.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kvjit/kvjit.h"
#include "result.h"
#include "safetensors.h"
#include "tensor.h"

namespace kvjit::tool {

/// A tensor of the file, dense, and the strides that it had in the call; empty: it was dense there, too.
struct RecordedTensor {
    Tensor tensor;
    std::vector<std::int64_t> strides;
};

/// Tensors by their names in the file: fields of kvjit_batch and kvjit_tensors, `blocks` and `scale_blocks`.
struct Recording {
    kvjit_spec spec;
    kvjit_batch numbers;  // the batch without arrays and tables
    bool stores_nothing = false;
    std::int64_t split_keys = 0, prefill_split_keys = 0;
    std::string target;  // that it was recorded on
    std::map<std::string, RecordedTensor> inputs;
    std::map<std::string, Tensor> got, out;                           // by the name without its prefix
    std::map<std::string, std::vector<std::int64_t>> result_strides;  // of results that weren't dense in the call

    kvjit_op op() const { return static_cast<kvjit_op>(spec.op); }
    kvjit_dtype t1() const { return static_cast<kvjit_dtype>(spec.t1); }
    std::int64_t batch_size() const { return inputs.at("seqstarts").tensor.size() - 1; }
    /// An absent tensor where the file has none of this name.
    const Tensor& input(const std::string& name) const;
    /// Element i of an array or a table.
    std::int64_t index(const std::string& name, std::int64_t i) const;
    bool has(const std::string& name) const { return inputs.contains(name); }
    bool wants(const std::string& name) const { return got.contains(name) || out.contains(name); }
    /// The run stored new keys and values.
    bool stores() const { return has("current_key"); }
};

/// Reads and checks what kvjit itself doesn't check: fields and tensors that it has no use for are refused, except
/// those that begin with `was.`; so are arrays of a wrong length, and strides that would need far more memory than the
/// tensor. Errors name the file, the field or tensor, what it is and what was expected.
Result<Recording> read_recording(const SafetensorsFile& file);

}  // namespace kvjit::tool

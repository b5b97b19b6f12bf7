// The bytes of a recording: the safetensors format, whose header comes first.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kvjit/kvjit.h"

namespace kvjit::rt {

class CaseFile {
public:
    void set(std::string name, std::string value) { metadata_[std::move(name)] = std::move(value); }
    /// Tensors' bytes lie in the order of these calls.
    void add(std::string name, kvjit_dtype dtype, const std::vector<std::int64_t>& shape);

    /// Bytes of the file. More than 2^62: they can't be counted.
    std::int64_t bytes() const;
    /// What comes before the tensors' bytes.
    std::string header() const;

private:
    struct Tensor {
        std::string name;
        kvjit_dtype dtype;
        std::vector<std::int64_t> shape;
        std::int64_t bytes;
    };
    std::map<std::string, std::string> metadata_;
    std::vector<Tensor> tensors_;
    std::int64_t data_bytes_ = 0;
};

}  // namespace kvjit::rt

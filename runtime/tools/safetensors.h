// Reads the safetensors format: 8 bytes of header length (little-endian), a JSON header, then the tensors' bytes.
// Everything a hostile file may claim is checked: nothing outside the file is ever read, and tensors are read on
// request only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "result.h"
#include "terminal.h"

namespace kvjit::tool {

/// Where a tensor lies in its file. dtype is the format's own name: "F32", "F16", "I8", "U8", "I32", "I64", ...
struct TensorInfo {
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::size_t begin = 0;  // bytes from the end of the header
    std::size_t end = 0;
};

class SafetensorsFile {
public:
    /// Opens a regular file and reads its header. Takes n log n for n tensors. Errors name the path, the tensor or
    /// field, what it is and what it may be.
    static Result<SafetensorsFile> open(const std::string& path);

    const std::string& path() const { return path_; }
    const std::map<std::string, std::string>& metadata() const { return metadata_; }
    const std::map<std::string, TensorInfo>& tensors() const { return tensors_; }

    /// Bytes of all tensors.
    std::size_t data_bytes() const { return data_bytes_; }
    /// Reads one of tensors(); `out` has its size.
    Result<void> read(const TensorInfo& tensor, std::span<std::byte> out) const;

private:
    Result<void> take_header(const std::string& text);

    std::string path_;
    std::map<std::string, std::string> metadata_;
    std::map<std::string, TensorInfo> tensors_;
    std::shared_ptr<std::FILE> file_;
    std::size_t data_begin_ = 0;
    std::size_t data_bytes_ = 0;
};

/// Bytes of one element, 0 for a dtype that the format does not know.
std::size_t safetensors_element_bytes(std::string_view dtype);

/// "[2, 3, 4]"; of many extents the first and their number.
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace kvjit::tool

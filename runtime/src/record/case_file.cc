#include "record/case_file.h"

#include <cstdio>

#include "check/arithmetic.h"
#include "check/fault.h"
#include "generator/element_type.h"
#include "record/case_fields.h"

namespace kvjit::rt {
namespace {

std::string quoted(std::string_view raw) {
    std::string text = "\"";
    for (const char c : raw) {
        char escape[8];
        if (static_cast<unsigned char>(c) < 0x20) {
            std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
            text += escape;
            continue;
        }
        if (c == '"' || c == '\\') text += '\\';
        text += c;
    }
    return text + '"';
}

std::string listed(const std::vector<std::int64_t>& numbers) {
    std::string text = "[";
    for (const std::int64_t number : numbers) text += (text.size() > 1 ? "," : "") + std::to_string(number);
    return text + ']';
}

}  // namespace

void CaseFile::add(std::string name, kvjit_dtype dtype, const std::vector<std::int64_t>& shape) {
    std::int64_t bytes = gen::dtype_bytes(dtype);
    for (const std::int64_t extent : shape) bytes = saturating_product(bytes, extent);
    tensors_.push_back({std::move(name), dtype, shape, bytes});
    data_bytes_ = saturating_sum(data_bytes_, bytes);
}

std::int64_t CaseFile::bytes() const {
    return saturating_sum(data_bytes_, static_cast<std::int64_t>(header().size()));
}

std::string CaseFile::header() const {
    std::string json = "{\"__metadata__\":{";
    for (const auto& [name, value] : metadata_) {
        json += (json.back() == '{' ? "" : ",") + quoted(name) + ':' + quoted(value);
    }
    json += '}';
    std::int64_t begin = 0;
    for (const Tensor& tensor : tensors_) {
        const std::int64_t end = saturating_sum(begin, tensor.bytes);
        json += text(",", quoted(tensor.name), ":{\"dtype\":\"", record::stored_name(tensor.dtype),
                     "\",\"shape\":", listed(tensor.shape), ",\"data_offsets\":", listed({begin, end}), "}");
        begin = end;
    }
    json += '}';
    json.resize((json.size() + 7) / 8 * 8, ' ');  // tensors are aligned then
    std::string length;
    for (std::size_t byte = 0; byte < 8; ++byte) length += static_cast<char>(json.size() >> (8 * byte) & 0xff);
    return length + json;
}

}  // namespace kvjit::rt

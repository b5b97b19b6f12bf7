#include "recording/with_oracle.h"

#include <span>

#include "record/case_fields.h"
#include "record/case_file.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

/// A file in the making: tensors are added with their bytes.
class Draft {
public:
    explicit Draft(const std::map<std::string, std::string>& metadata) {
        for (const auto& [name, value] : metadata) file_.set(name, value);
    }

    Result<void> add(const SafetensorsFile& from, const std::string& name, const TensorInfo& tensor) {
        const kvjit_dtype dtype = record::stored_dtype(tensor.dtype);
        if (dtype == KVJIT_AUTO) return fail("tensor " + in_quotes(name) + " has dtype " + tensor.dtype);
        const auto read = from.read(tensor, room_for(name, dtype, tensor.shape, tensor.end - tensor.begin));
        return read ? read : fail("tensor " + in_quotes(name) + ": " + read.error());
    }
    void add(const std::string& name, const Tensor& tensor) {
        const auto room =
            room_for(name, tensor.dtype(), {tensor.shape().begin(), tensor.shape().end()}, tensor.bytes().size());
        std::ranges::copy(tensor.bytes(), room.begin());
    }
    std::string bytes() const { return file_.header() + data_; }

private:
    std::span<std::byte> room_for(const std::string& name, kvjit_dtype dtype, const std::vector<std::int64_t>& shape,
                                  std::size_t bytes) {
        file_.add(name, dtype, shape);
        data_.resize(data_.size() + bytes);
        return std::as_writable_bytes(std::span(data_)).last(bytes);
    }

    rt::CaseFile file_;
    std::string data_;
};

}  // namespace

Result<std::string> with_oracle(const SafetensorsFile& file, const Recording& call, const Results& ran,
                                const Results& computed) {
    Draft draft(file.metadata());
    for (const auto& [name, tensor] : file.tensors()) {
        if (name.starts_with(record::kOut)) continue;
        if (auto added = draft.add(file, name, tensor); !added) return fail(added.error());
    }
    for (const auto& [name, tensor] : computed) {
        const bool is_given = call.has(name) ? call.stores() : ran.contains(name);
        if (is_given) draft.add(std::string(record::kOut) + name, tensor);
    }
    return draft.bytes();
}

}  // namespace kvjit::tool

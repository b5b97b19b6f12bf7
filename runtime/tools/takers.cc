#include "takers.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "record/case_fields.h"

namespace kvjit::tool {
namespace {

bool shape_matches(std::span<const std::int64_t> shape, std::span<const std::int64_t> expected) {
    return std::ranges::equal(shape, expected,
                              [](std::int64_t got, std::int64_t want) { return want == kAny || got == want; });
}

std::string expected_text(std::span<const std::int64_t> expected) {
    std::string text = shape_text(expected);
    for (std::size_t at; (at = text.find("-1")) != std::string::npos;) text.replace(at, 2, "any");
    return text;
}

/// Reads all of `text` as one number.
template <class T>
bool read_whole(const std::string& text, T& number) {
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    return status == std::errc{} && end == text.data() + text.size();
}

}  // namespace

std::string MetadataTaker::text(const std::string& name, std::optional<std::string> missing) {
    taken_.insert(name);
    const auto found = file_.metadata().find(name);
    if (found != file_.metadata().end()) return found->second;
    if (!missing) refuse("metadata field " + in_quotes(name) + " is missing");
    return std::move(missing).value_or("");
}

std::int64_t MetadataTaker::integer(const std::string& name, std::int64_t low, std::int64_t high,
                                    std::optional<std::string> missing) {
    const std::string value = text(name, std::move(missing));
    std::int64_t number = 0;
    if (read_whole(value, number) && number >= low && number <= high) return number;
    refuse_value(name, value, "an integer from " + std::to_string(low) + " to " + std::to_string(high));
    return low;
}

float MetadataTaker::positive(const std::string& name) {
    const std::string value = text(name);
    double number = 0;
    const bool legal = read_whole(value, number) && number > 0 && std::isfinite(static_cast<float>(number));
    if (legal) return static_cast<float>(number);
    refuse_value(name, value, "a number above 0");
    return 1;
}

template <class T>
T MetadataTaker::number(const std::string& name, T none, T least, const std::string& takes) {
    const std::string value = text(name, std::to_string(none));
    T number{};
    const bool legal =
        read_whole(value, number) && (number == none || (number >= least && number <= std::numeric_limits<T>::max()));
    if (legal) return number;
    refuse_value(name, value, takes);
    return none;
}
template std::int64_t MetadataTaker::number(const std::string&, std::int64_t, std::int64_t, const std::string&);
template float MetadataTaker::number(const std::string&, float, float, const std::string&);

void MetadataTaker::refuse_value(const std::string& name, const std::string& value, const std::string& expected) {
    refuse("metadata field " + in_quotes(name) + " is " + in_quotes(value) + ", expected " + expected);
}

void MetadataTaker::refuse_unknown(std::string_view remark) {
    for (const auto& [name, value] : file_.metadata()) {
        const bool known = taken_.contains(name) || name.starts_with(remark);
        if (!known) refuse("metadata field " + in_quotes(name) + " is unknown");
    }
}

void MetadataTaker::refuse(std::string why) {
    if (error_.empty()) error_ = std::move(why);
}

const TensorInfo* TensorTaker::find(const std::string& name, kvjit_dtype dtype,
                                    const std::vector<std::int64_t>& expected) {
    names_.insert(name);
    const auto found = file_.tensors().find(name);
    if (found == file_.tensors().end()) {
        refuse("tensor " + in_quotes(name) + " is missing");
        return nullptr;
    }
    const TensorInfo& info = found->second;
    if (info.dtype != record::stored_name(dtype)) {
        refuse("tensor " + in_quotes(name) + " has dtype " + info.dtype + ", expected " +
               std::string(record::stored_name(dtype)));
        return nullptr;
    }
    if (!shape_matches(info.shape, expected)) {
        refuse("tensor " + in_quotes(name) + " has shape " + shape_text(info.shape) + ", expected " +
               expected_text(expected));
        return nullptr;
    }
    return &info;
}

void TensorTaker::take(Tensor& to, const std::string& name, kvjit_dtype dtype,
                       const std::vector<std::int64_t>& expected) {
    const TensorInfo* info = find(name, dtype, expected);
    if (info != nullptr) taken_.push_back({&to, dtype, &file_.tensors().find(name)->first, info});
}

void TensorTaker::take_any(Tensor& to, const std::string& name) {
    const auto found = file_.tensors().find(name);
    const kvjit_dtype dtype = found == file_.tensors().end() ? KVJIT_AUTO : record::stored_dtype(found->second.dtype);
    if (dtype == KVJIT_AUTO || found->second.shape.size() > KVJIT_MAX_RANK) {
        return refuse("tensor " + in_quotes(name) + " has dtype " + found->second.dtype + " and shape " +
                      shape_text(found->second.shape) + ", expected a dtype of kvjit's and at most " +
                      std::to_string(KVJIT_MAX_RANK) + " axes");
    }
    take(to, name, dtype, found->second.shape);
}

void TensorTaker::refuse_length(const std::string& name, const std::string& expected) {
    refuse("tensor " + in_quotes(name) + " has shape " + shape_text(shape(name)) + ", expected " + expected);
}

std::vector<std::int64_t> TensorTaker::shape(const std::string& name) const {
    const auto found = file_.tensors().find(name);
    return found == file_.tensors().end() ? std::vector<std::int64_t>{} : found->second.shape;
}

std::vector<std::int64_t> TensorTaker::indices(const std::string& name, std::int64_t extent) {
    const TensorInfo* info = find(name, KVJIT_I64, {extent});
    if (info == nullptr) return {};
    std::vector<std::int64_t> values(static_cast<std::size_t>(info->shape[0]));
    if (auto read = file_.read(*info, std::as_writable_bytes(std::span(values))); !read) refuse(read.error());
    return values;
}

std::int64_t TensorTaker::total(const std::string& name, const std::vector<std::int64_t>& starts) {
    if (!starts.empty() && starts.back() >= 0) return starts.back();
    refuse("tensor " + in_quotes(name) + " ends with " + (starts.empty() ? "nothing" : std::to_string(starts.back())) +
           ", expected the number of tokens");
    return 0;
}

void TensorTaker::refuse_unknown(std::string_view remark) {
    for (const auto& [name, info] : file_.tensors()) {
        const bool is_remark = !remark.empty() && name.starts_with(remark);
        if (!is_remark && !names_.contains(name)) refuse("tensor " + in_quotes(name) + " is unknown");
    }
}

void TensorTaker::load() {
    for (const Taken& tensor : taken_) {
        if (error_.empty()) load(tensor);
    }
}

void TensorTaker::load(const Taken& tensor) {
    *tensor.to = Tensor(tensor.dtype, tensor.info->shape, std::byte{0});
    const auto read = file_.read(*tensor.info, tensor.to->bytes());
    if (!read) refuse("tensor " + in_quotes(*tensor.name) + ": " + read.error());
}

void TensorTaker::refuse(std::string why) {
    if (error_.empty()) error_ = std::move(why);
}

}  // namespace kvjit::tool

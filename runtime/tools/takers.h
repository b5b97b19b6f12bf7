// Taking what a recorded file must hold, one field or tensor at a time. The first failure is kept and says what was
// found and what was expected; later requests then return harmless values, so that callers need not check each.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "safetensors.h"
#include "tensor.h"

namespace kvjit::tool {

/// A word that a metadata field takes, and what it stands for.
struct Name {
    std::string_view text;
    int value;
};

class MetadataTaker {
public:
    explicit MetadataTaker(const SafetensorsFile& file) : file_(file) {}

    const std::string& error() const { return error_; }

    /// The field's text; `missing` is what a file without the field means, if that is legal.
    std::string text(const std::string& name, std::optional<std::string> missing = {});
    std::int64_t integer(const std::string& name, std::int64_t low, std::int64_t high,
                         std::optional<std::string> missing = {});
    /// A finite number above 0.
    float positive(const std::string& name);
    /// `none`, the value where the field is missing, or a finite number from `least` on; `takes` describes these. T is
    /// std::int64_t or float.
    template <class T>
    T number(const std::string& name, T none, T least, const std::string& takes);

    template <std::size_t N>
    int choice(const std::string& name, const std::array<Name, N>& names, std::optional<std::string> missing = {}) {
        const std::string value = text(name, std::move(missing));
        const auto found = std::ranges::find(names, value, &Name::text);
        if (found != names.end()) return found->value;
        std::string takes = "one of";
        for (const Name& each : names) takes += " " + std::string(each.text);
        refuse_value(name, value, takes);
        return names.front().value;
    }

    void refuse_value(const std::string& name, const std::string& value, const std::string& expected);

    /// Refuses fields that were not taken, except those that begin with `remark`.
    void refuse_unknown(std::string_view remark);

private:
    void refuse(std::string why);

    const SafetensorsFile& file_;
    std::set<std::string> taken_;
    std::string error_;
};

inline constexpr std::int64_t kAny = -1;  // an extent that the file chooses

class TensorTaker {
public:
    explicit TensorTaker(const SafetensorsFile& file) : file_(file) {}

    const std::string& error() const { return error_; }

    /// Checks the tensor; load() reads it into `to`, which must live until then.
    void take(Tensor& to, const std::string& name, kvjit_dtype dtype, const std::vector<std::int64_t>& expected);
    /// The same, of any type that kvjit knows and any shape that a kvjit_tensor may have.
    void take_any(Tensor& to, const std::string& name);
    bool has(const std::string& name) const { return file_.tensors().contains(name); }
    /// The shape that the file gives a tensor; empty where it has none.
    std::vector<std::int64_t> shape(const std::string& name) const;
    /// A rank-1 int64 tensor, read at once.
    std::vector<std::int64_t> indices(const std::string& name, std::int64_t extent);
    /// The last of `starts`, which counts tokens.
    std::int64_t total(const std::string& name, const std::vector<std::int64_t>& starts);

    /// Refuses a tensor's length.
    void refuse_length(const std::string& name, const std::string& expected);
    /// Refuses tensors that were not taken, except those that begin with `remark`, where there is one.
    void refuse_unknown(std::string_view remark = {});
    /// Reads what was taken, unless something was refused: other files than recorded calls cost no memory.
    void load();

private:
    struct Taken {
        Tensor* to;
        kvjit_dtype dtype;
        const std::string* name;
        const TensorInfo* info;
    };

    void refuse(std::string why);
    void load(const Taken& tensor);
    /// Null: refused.
    const TensorInfo* find(const std::string& name, kvjit_dtype dtype, const std::vector<std::int64_t>& expected);

    const SafetensorsFile& file_;
    std::set<std::string> names_;
    std::vector<Taken> taken_;
    std::string error_;
};

}  // namespace kvjit::tool

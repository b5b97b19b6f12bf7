// What messages call a tensor's elements.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kvjit::tool {

/// What messages call a tensor and its axes.
struct Label {
    std::string name;
    std::vector<std::string> axes;               // "token", "head"; none: indices alone
    std::span<const std::int64_t> token_starts;  // (B+1), of axis "token": whose sequence a token is; empty: unknown

    Label(const char* tensor) : name(tensor) {}
    Label(std::string tensor, std::vector<std::string> its_axes, std::span<const std::int64_t> starts)
        : name(std::move(tensor)), axes(std::move(its_axes)), token_starts(starts) {}

    /// "attn_output[token 5 (sequence 1, its token 2), head 0, d 7]", or "out.lse(5, 0)".
    std::string place(std::span<const std::int64_t> shape, std::int64_t i) const;
};

/// The part of a tensor that some of its elements reach: of each axis, the indices that they have.
class Region {
public:
    /// `shape` outlives it.
    explicit Region(std::span<const std::int64_t> shape);

    /// `element`: counted in row-major order, below the product of the shape.
    void add(std::int64_t element);
    std::int64_t count() const { return count_; }
    /// "token 5, head 4 to 7, every d"; where the label has no axes, "(5, 4 to 7, *)". "3 of head 0 to 9" where the
    /// indices between are not all there. Something was added.
    std::string text(const Label& label) const;

private:
    std::string axis_text(std::size_t axis, const std::string& name) const;

    std::span<const std::int64_t> shape_;
    std::vector<std::vector<bool>> reached_;  // (axis, index)
    std::int64_t count_ = 0;
};

}  // namespace kvjit::tool

// What of decode is timed: the lengths of a batch, what its cache holds, and how that is found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "call/arrays.h"
#include "kvjit/kvjit.hpp"

namespace kvjit::bench {

inline constexpr std::int64_t kHeads = 32, kKvHeads = 8, kDim = 128;  // Llama 3 8B's
inline constexpr std::int64_t kPage = 128, kBlock = 16;

/// What a cache holds.
struct Elements {
    const char* name;
    const char* spec;
};
inline constexpr Elements kF16 = {"f16", "quant_bit=0"};
inline constexpr Elements kInt8 = {"int8 g8", "quant_bit=8,quant_group=8"};
inline constexpr Elements kInt4 = {"int4 g32", "quant_bit=4,quant_group=32"};
inline constexpr Elements kOneScale = {"int8 g128", "quant_bit=8,quant_group=128"};

struct Shape {
    std::string text;
    std::vector<std::int64_t> lengths;  // of each sequence, in keys
    std::int64_t kv_heads = kKvHeads;
    std::int64_t new_tokens = 1;  // of each sequence

    std::int64_t sequences() const { return std::ssize(lengths); }
    std::int64_t rows() const { return sequences() * new_tokens; }
    std::int64_t longest() const { return std::ranges::max(lengths); }
    std::int64_t keys() const { return std::reduce(lengths.begin(), lengths.end()); }
    std::int64_t pages(std::int64_t page) const {
        std::int64_t pages = 0;
        for (const std::int64_t length : lengths) pages += pages_of(length, page);
        return pages;
    }
    static std::int64_t pages_of(std::int64_t length, std::int64_t page) { return (length + page - 1) / page; }
};

/// `sequences` of `keys` keys, with one new token each.
Shape even(std::int64_t sequences, std::int64_t keys);
/// What engines meet beside those: ragged lengths, other groups, several new tokens.
std::vector<Shape> engine_shapes();

/// One contestant: a kind of elements, how they are found, whether new tokens are stored first, and what is checked.
struct Variant {
    const Elements& elements;
    bool blocks;
    bool stores;
    kvjit_check_level check = KVJIT_CHECK_NONE;

    std::string spec(const Shape& shape) const {
        return "op=MultiHeadCacheAttention,head_dim=128,t1=f16,group=" + std::to_string(kHeads / shape.kv_heads) + "," +
               elements.spec +
               (blocks ? ",cache_mode=block_table,page_size=16,index_type=i32,layout=N2THD"
                       : ",cache_mode=page_table,page_size=128,layout=L2HTD");
    }
    std::string table() const { return blocks ? "blocks of 16" : "pages of 128"; }
    std::string name() const { return elements.name + (", " + table()) + (is_checked() ? ", checked" : ""); }
    bool is_checked() const { return check != KVJIT_CHECK_NONE; }
    /// Whether it is `other` without the check.
    bool is_unchecked(const Variant& other) const {
        return !is_checked() && &elements == &other.elements && blocks == other.blocks && stores == other.stores;
    }
    std::int64_t page() const { return blocks ? kBlock : kPage; }
    std::int64_t pages(const Shape& shape) const { return shape.pages(page()); }
    /// Of the keys' and values' rows, or of those of their scales, in all pages.
    std::size_t cache_bytes(const Shape& shape) const { return rows(shape) * row_bytes(shape); }
    std::size_t scale_bytes(const Shape& shape) const { return rows(shape) * scale_row_bytes(shape); }
    /// Of keys and values with their scales: what a call has to read.
    double bytes(const Shape& shape) const {
        const std::int64_t rows = shape.keys() * 2 * shape.kv_heads;
        return static_cast<double>(rows) * static_cast<double>(row_bytes(shape) + scale_row_bytes(shape));
    }

private:
    std::size_t rows(const Shape& shape) const {
        return static_cast<std::size_t>(pages(shape) * page() * 2 * shape.kv_heads);
    }
    std::size_t row_bytes(const Shape& shape) const { return bytes_of(test::code_row(test::parse_spec(spec(shape)))); }
    std::size_t scale_row_bytes(const Shape& shape) const {
        const kvjit_spec parsed = test::parse_spec(spec(shape));
        return parsed.quant_bit == 0 ? 0 : bytes_of(test::scale_row(parsed));
    }
};

/// Of each even shape: all of them, and two that check what they are given.
std::vector<Variant> all_variants();

/// Batch and index arrays, in host memory. The cache has no more pages than the keys take; they lie in no order.
test::IndexArrays arrays_of(const Shape& shape, const Variant& variant);

}  // namespace kvjit::bench

// Element types of tensors, for the host. Kernels use element_of in templates/common/types.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "kvjit/kvjit.h"

namespace kvjit::gen {

struct ElementType {
    kvjit_dtype dtype;
    std::string_view name;     // as users write it
    std::int64_t bytes;        // of KVJIT_U8: one byte of two int4 codes
    std::string_view storage;  // its name in templates
    bool multiplies;           // tensor cores multiply such elements
};

inline constexpr ElementType kElementTypes[] = {
    {KVJIT_AUTO, "auto", 0, "", false},   {KVJIT_F32, "f32", 4, "float", false},
    {KVJIT_F16, "f16", 2, "f16_t", true}, {KVJIT_BF16, "bf16", 2, "bf16_t", true},
    {KVJIT_I8, "i8", 1, "i8_t", false},   {KVJIT_U8, "u8", 1, "i4x2_t", false},
    {KVJIT_I32, "i32", 4, "i32", false},  {KVJIT_I64, "i64", 8, "i64", false}};
/// For a number that is no kvjit_dtype, which callers' tensors may have.
inline constexpr ElementType kNoElementType = {KVJIT_AUTO, "unknown", 0, "", false};

constexpr const ElementType& element_type(std::int32_t dtype) {
    for (const ElementType& type : kElementTypes) {
        if (type.dtype == dtype) return type;
    }
    return kNoElementType;
}

constexpr std::string_view dtype_name(kvjit_dtype type) {
    return element_type(type).name;
}
constexpr std::int64_t dtype_bytes(kvjit_dtype type) {
    return element_type(type).bytes;
}

}  // namespace kvjit::gen

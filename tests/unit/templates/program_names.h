// Names for one compiled copy of the templates. KVJIT_CASE: the copy's name; KVJIT_LEVEL: its instruction set.
#pragma once

#include "programs.h"

#define KVJIT_JOIN_(a, b) a##b
#define KVJIT_JOIN(a, b) KVJIT_JOIN_(a, b)
#define KVJIT_TEXT_(x) #x
#define KVJIT_TEXT(x) KVJIT_TEXT_(x)

#define kvjit_store KVJIT_JOIN(kvjit_store_, KVJIT_CASE)
#define kvjit_load KVJIT_JOIN(kvjit_load_, KVJIT_CASE)
#define kvjit_merge KVJIT_JOIN(kvjit_merge_, KVJIT_CASE)

#include "common/types.h"

namespace kvjit::test {

template <class T>
inline constexpr Type kTypeOf = Type::kF32;
template <>
inline constexpr Type kTypeOf<f16_t> = Type::kF16;
template <>
inline constexpr Type kTypeOf<bf16_t> = Type::kBf16;
template <>
inline constexpr Type kTypeOf<i8_t> = Type::kI8;
template <>
inline constexpr Type kTypeOf<i4x2_t> = Type::kI4;

}  // namespace kvjit::test

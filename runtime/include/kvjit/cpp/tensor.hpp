// Views of the caller's memory. Part of kvjit.hpp.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "kvjit/kvjit.h"

namespace kvjit {

/// A view of the caller's memory.
struct Tensor : kvjit_tensor {
    /// Absent.
    Tensor() : kvjit_tensor{} {}
    /// Row-major.
    Tensor(void* memory, kvjit_dtype type, std::initializer_list<std::int64_t> extents)
        : kvjit_tensor(
              kvjit_tensor_contiguous(memory, type, static_cast<std::int32_t>(extents.size()), extents.begin())) {}
    Tensor(const void* memory, kvjit_dtype type, std::initializer_list<std::int64_t> extents)
        : Tensor(const_cast<void*>(memory), type, extents) {}
};

struct Tensors : kvjit_tensors {
    Tensors() { kvjit_tensors_init(this); }
};

}  // namespace kvjit

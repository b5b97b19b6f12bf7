// kvjit for C++17: ownership, types and Result over the C ABI of kvjit.h, which documents what everything does.
// Header-only. kvjit/cpp/ has its parts, which are included by this header alone.
//
//     Engine -> Kernel -> Plan       cpp/engine.hpp, cpp/kernel.hpp
//     KernelSpec, SpecList           cpp/spec.hpp
//     Batch, Relayout                cpp/batch.hpp
//     Tensor, Tensors                cpp/tensor.hpp
//     half, bfloat16, dtype_of       cpp/element.hpp
//     Executor                       cpp/executor.hpp
//     Result, Error                  cpp/result.hpp
#pragma once

#if __cplusplus < 201703L
#error "kvjit.hpp needs C++17 or newer: compile with -std=c++17. Older C++ may include kvjit.h, the same as a C ABI"
#endif

#include "kvjit/cpp/engine.hpp"
#include "kvjit/cpp/executor.hpp"
#include "kvjit/kvjit.h"

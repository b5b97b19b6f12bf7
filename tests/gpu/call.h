// Kernels and plans for steps: what all tests here begin with. Failures are thrown as std::runtime_error with kvjit's
// message; tests of failures use the API itself.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "gpu/machine.h"
#include "gpu/step.h"
#include "kvjit/kvjit.hpp"

namespace kvjit::test {

/// "KVJIT_BAD_SHAPE: query.shape[1] is ..."
inline std::string text_of(const Error& error) {
    return std::string(kvjit_status_name(error.status())) + ": " + error.message();
}

template <class T>
T value_of(Result<T> result) {
    if (!result) throw std::runtime_error(text_of(result.error()));
    return *std::move(result);
}
inline void expect_done(const Result<void>& result) {
    if (!result) throw std::runtime_error(text_of(result.error()));
}

/// One engine a process, with the disk cache that KVJIT_CACHE_DIR names.
const Engine& shared_engine();
/// On the target of the step's machine.
Kernel kernel_for(const Step& step, const Engine& engine = shared_engine());

/// Splits of a fixed number of keys, so that bits depend on nothing else; nothing is checked.
PlanOptions unchecked_options(void* stream = nullptr);
/// The same, and each run checks the device's arrays.
PlanOptions checked_options(void* stream = nullptr);

Plan plan_for(const Step& step, const PlanOptions& options);
/// One run on the step's layer.
void run(Plan& plan, const Step& step);
/// A run of a new plan, waited for, on the step as reset() leaves it.
Written run_alone(Step& step, const PlanOptions& options);

// What the tests run: int8 and int4 in pages, float16 in blocks with 32-bit ids, and float32, which has kernels of its
// own.
inline constexpr char kInt8[] =
    "op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f16,quant_bit=8,cache_mode=page_table,page_size=128,"
    "layout=L2HTD";
inline constexpr char kInt4[] =
    "op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f16,quant_bit=4,quant_group=32,cache_mode=page_table,"
    "page_size=128,layout=L2HTD";
inline constexpr char kF16Blocks[] =
    "op=MultiHeadCacheAttention,head_dim=64,group=8,t1=f16,cache_mode=block_table,page_size=16,index_type=i32,"
    "layout=N2LTHD";
inline constexpr char kF32[] =
    "op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f32,cache_mode=page_table,page_size=32,layout=TL2HD";

}  // namespace kvjit::test

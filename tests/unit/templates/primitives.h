// What the CPU templates' vector layer is tested through: the same table of functions, compiled once for each level.
#pragma once

#include "common/abi.h"

namespace kvjit::test {

/// Each function works on `count` elements, a multiple of 16.
struct Primitives {
    const char* level;
    void (*half_to_float)(const unsigned short* half, float* value, abi::i64 count);
    void (*float_to_half)(const float* value, unsigned short* half, abi::i64 count);
    void (*bfloat16_to_float)(const unsigned short* brain, float* value, abi::i64 count);
    void (*float_to_bfloat16)(const float* value, unsigned short* brain, abi::i64 count);
    void (*exp)(const float* x, float* y, abi::i64 count);
    /// exp2_short of degree 5, and of degree 3.
    void (*exp2_short)(const float* x, float* y, abi::i64 count);
    void (*exp2_shorter)(const float* x, float* y, abi::i64 count);
    void (*log)(const float* x, double* y, abi::i64 count);
    void (*int8_to_float)(const signed char* code, float* value, abi::i64 count);
    void (*int4_to_float)(const unsigned char* codes, float* value, abi::i64 count);
    /// Of bytes.h. sums[i] += the products of bytes 4i..4i+3.
    void (*add_byte_products)(int* sums, const unsigned char* a, const signed char* b, abi::i64 count);
    /// 8 columns of 16 numbers each, from 16 rows of 32 bytes.
    void (*load_columns)(int* columns, const char* const* rows);
    /// 4 rows of 32 bytes, dealt out: all of them, and then the first 16 bytes of each.
    void (*zip_rows)(int* zipped, const char* const* rows);
    /// 4 rows of 64 bytes, dealt out: all of them, and then the last 32 bytes of each.
    void (*zip_long_rows)(int* zipped, const char* const* rows);
    void (*deal_digits)(const int* numbers, int* digits, abi::i64 count);
};

}  // namespace kvjit::test

#pragma once

#include <cstdint>

#include "kvjit/cpp/element.hpp"

namespace demo {

/// One row of queries at one head, and the keys and values that it sees.
struct PlainRow {
    const kvjit::half* query;  // (D)
    kvjit::half* output;       // (D)
    // Of the row's layer and kv head:
    const std::int8_t* key_codes;  // (T, D)
    const std::int8_t* value_codes;
    const kvjit::half* key_scales;  // (T, D / quant_group)
    const kvjit::half* value_scales;
    const std::int64_t* pages;  // the first slot of each
    std::int64_t keys;
    float* scores;  // (keys): room to work in
};

/// output = softmax(query . K^T / sqrt(D)) . V, keys and values dequantised on the way. plain_row.cc is compiled for
/// this very machine, with all that the compiler makes of such loops: demo/CMakeLists.txt.
void attend_plain_row(const PlainRow& row);

}  // namespace demo

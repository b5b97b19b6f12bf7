// Programs compiled from templates with a given spec block, and what that block says.
#pragma once

#include "common/abi.h"

namespace kvjit::test {

enum class Type { kF32, kF16, kBf16, kI8, kI4 };

/// store and load of one spec block.
struct CachePrograms {
    const char* name;
    const char* level;
    Type t1, t2, t3;
    int index_bytes, head_dim, quant_bit, quant_group, page_size;
    bool head_inner;
    void (*store)(const abi::StoreArgs*, const abi::TokenItem*);
    void (*load)(const abi::LoadArgs*, const abi::TokenItem*);
};

/// merge of one spec block.
struct MergeProgram {
    const char* name;
    const char* level;
    Type t1, partial;
    int head_dim;
    void (*merge)(const abi::MergeArgs*, const abi::MergeItem*);
};

}  // namespace kvjit::test

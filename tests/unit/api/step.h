// A decode step over a cache of pages, in types: one sequence, whose third token is new, 2 query heads over one kv
// head.
#pragma once

#include <cstdint>
#include <vector>

#include "kvjit/kvjit.hpp"

namespace kvjit::test {

struct Step {
    Step() {
        batch.num_kv_heads = 1;
        batch.max_tokens = 32;
        batch.set_seqstarts(seqstarts).set_kvstarts(kvstarts).set_start_pos(start_pos).set_cachestarts(pages, {1, 2});
        tensors.query = Tensor(query, {1, 2, 8});
        tensors.current_key = Tensor(key, {1, 1, 8});
        tensors.current_value = Tensor(value, {1, 1, 8});
        tensors.cache = Tensor(cache, {1, 2, 1, 32, 8});
        tensors.attn_output = Tensor(output, {1, 2, 8});
        tensors.lse = Tensor(lse, {1, 2});
    }
    Step(const Step&) = delete;

    static Kernel kernel() { return Engine::create()->kernel(*KernelSpec::parse(kSpec)).value(); }

    static constexpr const char* kSpec =
        "op=MultiHeadCacheAttention,head_dim=8,group=2,t1=f16,cache_mode=page_table,page_size=16,layout=L2HTD";
    const std::vector<std::int64_t> seqstarts{0, 1}, kvstarts{0, 3}, start_pos{2}, pages{16, 0};
    const std::vector<half> query = std::vector<half>(16, half(0.5F)), key = std::vector<half>(8, half(0.25F)),
                            value = std::vector<half>(8, half(3));
    std::vector<half> cache = std::vector<half>(2 * 32 * 8), output = std::vector<half>(16);
    std::vector<float> lse = std::vector<float>(2);
    Batch batch;
    Tensors tensors;
};

}  // namespace kvjit::test

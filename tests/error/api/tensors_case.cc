#include "tensors_case.h"

#include <algorithm>
#include <map>

namespace kvjit::test {

CallTensors::CallTensors(const BatchCase& c, std::int64_t query_rows, std::int64_t key_rows) : tensors{} {
    const gen::KernelSpec& spec = c.spec;
    tensors.struct_size = sizeof tensors;
    if (spec.op == KVJIT_OP_KEY_VALUE_CACHE || spec.op == KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION) {
        add_cache(c);
        add_new_tokens(c, query_rows);
    }
    if (spec.op != KVJIT_OP_KEY_VALUE_CACHE) add_attention(c, query_rows, key_rows);
    if (spec.op == KVJIT_OP_KEY_VALUE_CACHE || spec.op == KVJIT_OP_MULTI_HEAD_ATTENTION) {
        const std::int64_t heads = 2 * (spec.op == KVJIT_OP_KEY_VALUE_CACHE ? c.batch.num_repeat : 1);
        tensors.key = tensor(spec.t1, {key_rows, heads, 16});
        tensors.value = tensor(spec.t1, {key_rows, heads, 16});
    }
}

kvjit_tensor CallTensors::tensor(std::int32_t dtype, std::vector<std::int64_t> shape) {
    kvjit_tensor made{};
    made.dtype = dtype;
    made.rank = static_cast<std::int32_t>(shape.size());
    std::int64_t elements = 1;
    for (std::size_t axis = shape.size(); axis-- > 0; elements *= shape[axis]) {
        made.shape[axis] = shape[axis];
        made.strides[axis] = elements;
    }
    constexpr std::size_t kWidest = 8;
    const auto fill = static_cast<std::byte>(0x3c + memory_.size() % 4);
    memory_.emplace_back(static_cast<std::size_t>(elements) * kWidest, fill);
    made.data = memory_.back().data();
    return made;
}

std::vector<std::byte> CallTensors::snapshot() const {
    std::vector<std::byte> all;
    for (const auto& bytes : memory_) all.insert(all.end(), bytes.begin(), bytes.end());
    return all;
}

std::vector<std::byte> TensorsCase::snapshot() const {
    std::vector<std::byte> all = CallTensors::snapshot();
    for (const Blocks* blocks : {&code_blocks, &scale_blocks})
        all.insert(all.end(), blocks->memory.begin(), blocks->memory.end());
    return all;
}

/// Blocks at addresses are no tensors.
void CallTensors::add_cache(const BatchCase& c) {
    const gen::KernelSpec& spec = c.spec;
    if (spec.cache_mode == KVJIT_BLOCK_POINTERS) return;
    const kvjit_batch& batch = c.batch;
    const std::int64_t tokens = spec.cache_mode == KVJIT_BLOCK_TABLE ? spec.page_size : batch.max_tokens;
    const std::map<char, std::int64_t> extents{
        {'N', batch.num_blocks}, {'T', tokens}, {'L', batch.num_layers}, {'2', 2}, {'H', 2}};
    const auto of_layout = [&](std::int32_t dtype, std::string_view layout, std::int64_t last) {
        std::vector<std::int64_t> shape;
        const gen::Axes axes = gen::axes_of(layout);
        for (const char axis : axes.order()) {
            const auto inner = [&](char part) { return std::max(1, axes.extent(part)); };
            if (axis == 'd' || axis == 't')
                shape.push_back(inner(axis));
            else if (axis == 'D')
                shape.push_back(last / inner('d'));
            else
                shape.push_back(extents.at(axis) / (axis == 'T' ? inner('t') : 1));
        }
        return tensor(dtype, shape);
    };
    const std::string_view layout = spec.layout, values = spec.value_layout[0] == 0 ? spec.layout : spec.value_layout;
    const bool apart = gen::is_apart(spec);
    const std::int32_t types[] = {spec.t1, KVJIT_U8, KVJIT_I8};
    const std::int32_t type = types[spec.quant_bit / 4];
    const std::int64_t row = spec.quant_bit == 4 ? 8 : 16;
    (apart ? tensors.key_cache : tensors.cache) = of_layout(type, layout, row);
    if (apart) tensors.value_cache = of_layout(type, values, row);
    if (spec.quant_bit == 0) return;
    const std::int32_t scales = spec.t3 == KVJIT_AUTO ? spec.t1 : spec.t3;
    (apart ? tensors.key_scale : tensors.scale) = of_layout(scales, layout, 16 / spec.quant_group);
    if (apart) tensors.value_scale = of_layout(scales, values, 16 / spec.quant_group);
}

void CallTensors::add_new_tokens(const BatchCase& c, std::int64_t query_rows) {
    tensors.current_key = tensor(c.spec.t1, {query_rows, 2, 16});
    tensors.current_value = tensor(c.spec.t1, {query_rows, 2, 16});
}

void CallTensors::add_attention(const BatchCase& c, std::int64_t query_rows, std::int64_t key_rows) {
    const gen::KernelSpec& spec = c.spec;
    if (spec.op == KVJIT_OP_MERGE) {
        tensors.partial_output = tensor(spec.t1, {3, query_rows, 4, 16});
        tensors.partial_lse = tensor(KVJIT_F32, {3, query_rows, 4});
    } else {
        tensors.query = tensor(spec.t1, {query_rows, 4, 16});
    }
    if (spec.attn_mask == 2) tensors.attn_mask = tensor(spec.t1, {query_rows, key_rows});
    if (spec.attn_mask == 3) tensors.attn_mask = tensor(spec.t1, {4, query_rows, key_rows});
    tensors.attn_output = tensor(spec.t1, {query_rows, 4, 16});
    tensors.lse = tensor(KVJIT_F32, {query_rows, 4});
}

}  // namespace kvjit::test

#include "calls/tensors.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "oracle/elements.h"
#include "oracle/layout.h"

namespace kvjit::calls {
namespace {

constexpr std::int64_t kParts = 3;  // that a merge takes

/// The first `most` elements; they are repeated after that.
template <class Make>
void fill(const kvjit_tensor& tensor, std::int64_t most, const Repeat& repeat, Make make) {
    const auto bytes = bytes_of(tensor);
    const std::size_t size = tensor.rank == 0 ? 1 : oracle::bytes_of(tensor.dtype);
    const std::int64_t count = std::min(most, static_cast<std::int64_t>(bytes.size() / size));
    if (count == 0) return;
    std::vector<std::byte> pattern(static_cast<std::size_t>(count) * size);
    for (std::int64_t i = 0; i < count; ++i) oracle::write_element(pattern.data(), tensor.dtype, i, make());
    repeat(bytes, pattern);
}

void draw_with(const kvjit_tensor& tensor, Rng& rng, std::int64_t most, const Repeat& repeat) {
    const bool is_real = tensor.dtype == KVJIT_F32 || tensor.dtype == KVJIT_F16 || tensor.dtype == KVJIT_BF16;
    fill(tensor, most, repeat, [&] { return is_real ? rng.normal() : static_cast<double>(rng.between(-127, 127)); });
}

}  // namespace

CallTensors::CallTensors(const IndexArrays& arrays, Rows rows, Allocate allocate) : allocate_(std::move(allocate)) {
    const kvjit_spec& spec = arrays.spec;
    const std::int64_t kv_heads = arrays.batch.num_kv_heads, dim = spec.head_dim;
    kvjit_tensors_init(&tensors);
    if (oracle::has_cache(spec)) {
        add_cache(arrays);
        tensors.current_key = tensor(spec.t1, {rows.query, kv_heads, dim});
        tensors.current_value = tensor(spec.t1, {rows.query, kv_heads, dim});
    }
    if (spec.op != KVJIT_OP_KEY_VALUE_CACHE) add_attention(arrays, rows);
    if (spec.op == KVJIT_OP_KEY_VALUE_CACHE || spec.op == KVJIT_OP_MULTI_HEAD_ATTENTION) {
        const std::int64_t repeat = spec.op == KVJIT_OP_KEY_VALUE_CACHE ? arrays.batch.num_repeat : 1;
        tensors.key = tensor(spec.t1, {rows.key, kv_heads * repeat, dim});
        tensors.value = tensor(spec.t1, {rows.key, kv_heads * repeat, dim});
    }
}

/// Blocks at addresses are no tensors.
void CallTensors::add_cache(const IndexArrays& arrays) {
    const kvjit_spec& spec = arrays.spec;
    if (spec.cache_mode == KVJIT_BLOCK_POINTERS) return;
    const auto add = [&](kvjit_tensor& both, kvjit_tensor& key, kvjit_tensor& value, const oracle::RowType& row) {
        const auto of = [&](std::string_view layout) {
            return tensor(row.dtype, oracle::cache_shape(spec, arrays.batch, layout, row.elements));
        };
        (oracle::is_apart(spec) ? key : both) = of(spec.layout);
        if (oracle::is_apart(spec)) value = of(oracle::value_layout(spec));
    };
    add(tensors.cache, tensors.key_cache, tensors.value_cache, oracle::code_row(spec));
    if (spec.quant_bit != 0) add(tensors.scale, tensors.key_scale, tensors.value_scale, oracle::scale_row(spec));
}

void CallTensors::add_attention(const IndexArrays& arrays, Rows rows) {
    const kvjit_spec& spec = arrays.spec;
    const std::int64_t heads = arrays.batch.num_heads, dim = spec.head_dim;
    if (spec.op == KVJIT_OP_MERGE) {
        tensors.partial_output = tensor(spec.t1, {kParts, rows.query, heads, dim});
        tensors.partial_lse = tensor(KVJIT_F32, {kParts, rows.query, heads});
    } else {
        tensors.query = tensor(spec.t1, {rows.query, heads, dim});
    }
    if (spec.attn_mask == 2) tensors.attn_mask = tensor(spec.t1, {rows.query, rows.key});
    if (spec.attn_mask == 3) tensors.attn_mask = tensor(spec.t1, {heads, rows.query, rows.key});
    if (spec.has_sinks) tensors.sinks = tensor(KVJIT_F32, {heads});
    tensors.attn_output = tensor(spec.t1, {rows.query, heads, dim});
    tensors.lse = tensor(KVJIT_F32, {rows.query, heads});
}

kvjit_tensor CallTensors::tensor(int dtype, const Numbers& shape) {
    kvjit_tensor made = dense_tensor(nullptr, dtype, shape);
    made.data = allocate_(bytes_of(made).size());
    pieces_.push_back(bytes_of(made));
    return made;
}

std::vector<std::byte> CallTensors::snapshot() const {
    std::vector<std::byte> all;
    for (const std::span<std::byte> piece : pieces_) all.insert(all.end(), piece.begin(), piece.end());
    return all;
}

std::span<std::byte> bytes_of(const kvjit_tensor& tensor) {
    std::size_t bytes = tensor.rank == 0 ? 0 : oracle::bytes_of(tensor.dtype);
    for (std::int32_t axis = 0; axis < tensor.rank; ++axis) bytes *= static_cast<std::size_t>(tensor.shape[axis]);
    return {static_cast<std::byte*>(tensor.data), bytes};
}

void repeat_in_host_memory(std::span<std::byte> memory, std::span<const std::byte> pattern) {
    std::ranges::copy(pattern, memory.begin());
    for (std::size_t done = pattern.size(); done < memory.size(); done *= 2) {
        std::memcpy(memory.data() + done, memory.data(), std::min(done, memory.size() - done));
    }
}

void draw(const kvjit_tensor& tensor, Rng& rng, std::int64_t most) {
    draw_with(tensor, rng, most, repeat_in_host_memory);
}

void draw_inputs(const kvjit_tensors& tensors, Rng& rng, std::int64_t most, const Repeat& repeat) {
    for (const auto member :
         {&kvjit_tensors::query, &kvjit_tensors::current_key, &kvjit_tensors::current_value, &kvjit_tensors::key,
          &kvjit_tensors::value, &kvjit_tensors::cache, &kvjit_tensors::key_cache, &kvjit_tensors::value_cache})
        draw_with(tensors.*member, rng, most, repeat);
    for (const auto member : {&kvjit_tensors::scale, &kvjit_tensors::key_scale, &kvjit_tensors::value_scale})
        fill(tensors.*member, most, repeat, [&] { return 0.01 + 0.01 * rng.uniform(); });
}

}  // namespace kvjit::calls

#include "generator/operator.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "generator/program.h"
#include "joined.h"

namespace kvjit::gen {
namespace {

using enum TensorUse;
using Type = TensorType;
using Run = kvjit_tensors;

// ---- Tensors that operators share ----------------------------------------------------------------------------------

/// A cache's tensors. The source of a relayout counts as a cache of a plan that stores nothing.
constexpr auto kCacheTensors = std::to_array<OperatorTensor>({
    {"cache", &Run::cache, kCache, Type::kCache, ""},
    {"scale", &Run::scale, kScale, Type::kScale, ""},
    {"key_cache", &Run::key_cache, kCache, Type::kCache, "", Part::kKey},
    {"value_cache", &Run::value_cache, kCache, Type::kCache, "", Part::kValue},
    {"key_scale", &Run::key_scale, kScale, Type::kScale, "", Part::kKey},
    {"value_scale", &Run::value_scale, kScale, Type::kScale, "", Part::kValue},
});
constexpr auto kNewTensors = std::to_array<OperatorTensor>({
    {"current_key", &Run::current_key, kStored, Type::kT1, "SGD"},
    {"current_value", &Run::current_value, kStored, Type::kT1, "SGD"},
});
constexpr auto kQuery = std::to_array<OperatorTensor>({{"query", &Run::query, kInput, Type::kT1, "SHD"}});
constexpr auto kMaskTensors = std::to_array<OperatorTensor>({{"attn_mask", &Run::attn_mask, kMask, Type::kT1, ""}});
constexpr auto kSinkTensors = std::to_array<OperatorTensor>({{"sinks", &Run::sinks, kSinks, Type::kF32, "H"}});
constexpr auto kResults = std::to_array<OperatorTensor>({
    {"attn_output", &Run::attn_output, kOutput, Type::kT1, "SHD"},
    {"lse", &Run::lse, kOutputOpt, Type::kF32, "SH"},
});

// ---- Those of each -------------------------------------------------------------------------------------------------

/// Keys and values read back from the cache: rows of kv heads, repeated.
constexpr auto kLoadedTensors = std::to_array<OperatorTensor>({
    {"key", &Run::key, kOutputOpt, Type::kT1, "KRD"},
    {"value", &Run::value, kOutputOpt, Type::kT1, "KRD"},
});
constexpr auto kDenseTensors = std::to_array<OperatorTensor>({
    {"key", &Run::key, kInput, Type::kT1, "KGD"},
    {"value", &Run::value, kInput, Type::kT1, "KGD"},
});
constexpr auto kPartialTensors = std::to_array<OperatorTensor>({
    {"partial_output", &Run::partial_output, kInput, Type::kT1, "PSHD"},
    {"partial_lse", &Run::partial_lse, kInput, Type::kF32, "pSH"},
});

constexpr auto kKeyValueCacheTensors = joined(kNewTensors, kCacheTensors, kLoadedTensors);
constexpr auto kAttentionTensors = joined(kQuery, kMaskTensors, kSinkTensors, kDenseTensors, kResults);
constexpr auto kCacheAttentionTensors =
    joined(kQuery, kNewTensors, kCacheTensors, kMaskTensors, kSinkTensors, kResults);
constexpr auto kMergeTensors = joined(kSinkTensors, kPartialTensors, kResults);

constexpr Operator kOperators[] = {
    {KVJIT_OP_KEY_VALUE_CACHE, "KeyValueCache", Keys::kCache,
     "head_dim value_head_dim t1 t2 t3 quant_bit quant_group cache_mode page_size index_type starts_type layout "
     "value_layout",
     kKeyValueCacheTensors},
    {KVJIT_OP_MULTI_HEAD_ATTENTION, "MultiHeadAttention", Keys::kDense,
     "head_dim value_head_dim group t1 starts_type is_causal score_rules", kAttentionTensors},
    {KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION, "MultiHeadCacheAttention", Keys::kCache,
     "head_dim value_head_dim group t1 t2 t3 quant_bit quant_group cache_mode page_size index_type starts_type "
     "is_causal score_rules layout value_layout",
     kCacheAttentionTensors},
    {KVJIT_OP_MERGE, "Merge", Keys::kNone, "head_dim t1 starts_type has_sinks", kMergeTensors},
    {KVJIT_OP_RELAYOUT, "Relayout", Keys::kCache,
     "head_dim t1 t2 t3 quant_bit quant_group cache_mode page_size index_type starts_type layout value_layout to_t2 "
     "to_t3 to_quant_bit to_quant_group to_cache_mode to_page_size to_index_type to_layout to_value_layout",
     kCacheTensors},
};

constexpr TensorName kNames[] = {
    {"query", &Run::query},
    {"current_key", &Run::current_key},
    {"current_value", &Run::current_value},
    {"cache", &Run::cache},
    {"scale", &Run::scale},
    {"key_cache", &Run::key_cache},
    {"value_cache", &Run::value_cache},
    {"key_scale", &Run::key_scale},
    {"value_scale", &Run::value_scale},
    {"attn_mask", &Run::attn_mask},
    {"sinks", &Run::sinks},
    {"key", &Run::key},
    {"value", &Run::value},
    {"partial_output", &Run::partial_output},
    {"partial_lse", &Run::partial_lse},
    {"attn_output", &Run::attn_output},
    {"lse", &Run::lse},
};
static_assert(sizeof kNames / sizeof kNames[0] ==
              (sizeof(kvjit_tensors) - offsetof(kvjit_tensors, query)) / sizeof(kvjit_tensor));

/// Whether the operator's tensors are in the order of kNames.
constexpr bool in_order(const Operator& row) {
    const auto* at = std::begin(kNames);
    for (const OperatorTensor& tensor : row.tensors) {
        at = std::find_if(at, std::end(kNames), [&](const TensorName& named) {
            return named.member == tensor.member && named.name == tensor.name;
        });
        if (at == std::end(kNames)) return false;
    }
    return true;
}
constexpr bool in_order() {
    int op = 0;
    return std::ranges::all_of(kOperators, [&](const Operator& row) { return row.op == ++op && in_order(row); });
}
static_assert(in_order());

}  // namespace

std::span<const TensorName> tensor_names() {
    return kNames;
}

std::span<const OperatorTensor> cache_tensors() {
    return kCacheTensors;
}

std::span<const Operator> operators() {
    return kOperators;
}

const Operator& operator_of(const KernelSpec& spec) {
    return kOperators[spec.op - 1];
}

bool attends(const KernelSpec& spec) {
    return runs(spec, KVJIT_PROGRAM_DECODE);
}

bool loads(const KernelSpec& spec) {
    return runs(spec, KVJIT_PROGRAM_LOAD);
}

bool has_query_heads(const KernelSpec& spec) {
    const auto of_query = [](const OperatorTensor& tensor) { return tensor.axes.contains('H'); };
    return std::ranges::any_of(operator_of(spec).tensors, of_query);
}

}  // namespace kvjit::gen

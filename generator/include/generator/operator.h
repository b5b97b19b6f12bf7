// The table of operators, from which validation, checks, plans and the table in kvjit.h follow.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "generator/spec.h"

namespace kvjit::gen {

/// Where an operator's keys and values lie.
enum class Keys { kNone, kDense, kCache };

/// What a run does with a tensor.
enum class TensorUse {
    kInput,
    kInputOpt,
    kMask,    // an input if the spec has a mask
    kSinks,   // an input if the spec has sinks
    kStored,  // an optional input if the plan may store
    kCache,   // the spec's cache (see part): read, and written if the plan may store
    kScale,   // the same if the cache is quantised
    kOutput,
    kOutputOpt,
};

/// Which of the spec's types the elements have.
enum class TensorType { kT1, kCache, kScale, kF32 };

/// What a tensor of a cache holds.
enum class Part { kBoth, kKey, kValue };

struct OperatorTensor {
    std::string_view name;
    kvjit_tensor kvjit_tensors::* member;
    TensorUse use;
    TensorType type;
    /// Letters as in docs/semantics.md: S new tokens, K keys, H query heads, G kv heads, R kv heads times num_repeat, D
    /// elements, P parts (at least 1), p as many parts again, W mask columns. Empty: the spec decides, for cache and
    /// mask.
    std::string_view axes;
    Part part = Part::kBoth;
};

/// The tensors that a run may have, in the order of kvjit_tensors.
struct TensorName {
    std::string_view name;
    kvjit_tensor kvjit_tensors::* member;
};
std::span<const TensorName> tensor_names();

struct Operator {
    kvjit_op op;
    std::string_view name;
    Keys keys;
    std::string_view
        fields;  // of the spec that count, beside op: names, separated by spaces; score_rules: all of score_rules.h
    std::span<const OperatorTensor> tensors;  // in the order of kvjit_tensors
};

std::span<const OperatorTensor> cache_tensors();

/// In the order of kvjit_op.
std::span<const Operator> operators();
/// Precondition: `spec.op` is legal.
const Operator& operator_of(const KernelSpec& spec);

bool attends(const KernelSpec& spec);
bool loads(const KernelSpec& spec);
/// Whether any tensor of the operator has query heads. If none has, num_heads stands for an absent num_kv_heads.
bool has_query_heads(const KernelSpec& spec);
inline bool has_keys(const KernelSpec& spec) {
    return operator_of(spec).keys != Keys::kNone;
}

}  // namespace kvjit::gen

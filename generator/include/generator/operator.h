// Operators: what each of them is. Validation, checks, plans and the table in kvjit.h all follow this one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "generator/spec.h"

namespace kvjit::gen {

/// Where the keys and values are that an operator works on.
enum class Keys { kNone, kDense, kCache };

/// What a run does with a tensor.
enum class TensorUse {
    kInput,
    kInputOpt,
    kMask,    // an input if the spec has a mask
    kSinks,   // the same if it has sinks
    kStored,  // an optional input if the plan may store
    kCache,   // read; written, too, if the plan may store: where the spec's cache is such a tensor (part)
    kScale,   // the same if the cache is quantised
    kOutput,
    kOutputOpt,
};

/// Which of the spec's types the elements have.
enum class TensorType { kT1, kCache, kScale, kF32 };

/// Of a cache's tensors: what it holds.
enum class Part { kBoth, kKey, kValue };

struct OperatorTensor {
    std::string_view name;
    kvjit_tensor kvjit_tensors::* member;
    TensorUse use;
    TensorType type;
    /// Letters as docs/semantics.md has them: S new tokens, K keys, H query heads, G kv heads, R kv heads times
    /// num_repeat, D elements, P and p parts (1 and as many as before), W mask columns. Empty: the spec says, of cache
    /// and mask.
    std::string_view axes;
    Part part = Part::kBoth;
};

/// Of all tensors that a run may have, in the order of kvjit_tensors.
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

/// A cache's tensors.
std::span<const OperatorTensor> cache_tensors();

/// In the order of kvjit_op.
std::span<const Operator> operators();
/// `spec.op` is legal.
const Operator& operator_of(const KernelSpec& spec);

bool attends(const KernelSpec& spec);
bool loads(const KernelSpec& spec);
/// Whether any of its tensors has them; else a batch that says nothing of kv heads says how many in num_heads.
bool has_query_heads(const KernelSpec& spec);
inline bool has_keys(const KernelSpec& spec) {
    return operator_of(spec).keys != Keys::kNone;
}

}  // namespace kvjit::gen

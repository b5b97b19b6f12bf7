#include "check/check_tensors.h"

#include <algorithm>
#include <optional>
#include <span>

#include "check/arithmetic.h"
#include "check/check_batch.h"
#include "check/fault.h"
#include "cuda/shape.h"
#include "generator/operator.h"

namespace kvjit::rt {
namespace {

using gen::KernelSpec;
using gen::Result;
using Tensor = gen::OperatorTensor;
using Type = gen::TensorType;
using Use = gen::TensorUse;

// ---- Which operator takes which tensor --------------------------------------------------------------------

struct Call {
    const BatchView& batch;
    const BatchRows& rows;
    const kvjit_tensors& tensors;

    const KernelSpec& spec() const { return batch.spec; }
};

/// Why the spec's cache has no such tensor; null: it has one.
const char* unused_cache(const Call& call, const Tensor& tensor) {
    const KernelSpec& spec = call.spec();
    const bool is_apart = call.batch.cache.is_apart();
    if (!gen::has_cache_tensors(spec)) return "blocks lie where cachestarts says";
    if (is_apart && tensor.part == gen::Part::kBoth)
        return "keys and values lie apart, the spec's layout has no axis 2";
    if (!is_apart && tensor.part != gen::Part::kBoth)
        return "keys and values lie in one tensor, the spec's layout has an axis 2";
    return tensor.use == Use::kScale && spec.quant_bit == 0 ? "the spec's quant_bit is 0" : nullptr;
}

/// Whether its rows are keys, which begin at kvstarts[b].
bool needs_key_rows(const Tensor& tensor) {
    return tensor.axes.starts_with('K');
}

/// The tensor's use with the spec's and the plan's conditions resolved: kMask becomes kInput or nothing, say.
std::optional<Use> use_of(const Call& call, const Tensor& tensor) {
    switch (tensor.use) {
        case Use::kMask:
            return call.spec().attn_mask != 0 ? std::optional(Use::kInput) : std::nullopt;
        case Use::kSinks:
            return call.spec().has_sinks != 0 ? std::optional(Use::kInput) : std::nullopt;
        case Use::kStored:
            return call.batch.stores ? std::optional(Use::kInputOpt) : std::nullopt;
        case Use::kScale:
        case Use::kCache:
            if (unused_cache(call, tensor) != nullptr) return std::nullopt;
            return call.batch.stores ? tensor.use : Use::kInput;
        case Use::kOutputOpt:
            if (call.batch.batch_size == 0 || !needs_key_rows(tensor) || is_given(call.batch.keys.starts))
                return tensor.use;
            return std::nullopt;
        default:
            return tensor.use;
    }
}

bool is_optional(Use use) {
    return use == Use::kInputOpt || use == Use::kOutputOpt;
}
bool is_written(Use use) {
    return use >= Use::kCache;
}
/// Whether the tensor is the cache or its scales.
bool is_cache(const Tensor& tensor) {
    return tensor.type == Type::kCache || tensor.type == Type::kScale;
}

// ---- What it looks like -----------------------------------------------------------------------------------

kvjit_dtype type_of(const KernelSpec& spec, Type type) {
    switch (type) {
        case Type::kT1:
            return static_cast<kvjit_dtype>(spec.t1);
        case Type::kCache:
            return gen::cache_type(spec);
        case Type::kScale:
            return gen::scale_type(spec);
        case Type::kF32:
            return KVJIT_F32;
    }
    return KVJIT_AUTO;
}

Axis axis_of(const Call& call, char axis) {
    switch (axis) {
        case 'S':
            return {"S", call.rows.query, true};
        case 'K':
            return {"K", call.rows.key, true};
        case 'W':
            return {"W", call.rows.key, true};
        case 'H':
            return {"H", call.batch.num_heads, false};
        case 'G':
            return {"Hkv", call.batch.num_kv_heads, false};
        case 'R':
            return {"Hkv * num_repeat", saturating_product(call.batch.num_kv_heads, call.batch.num_repeat), false};
        case 'D':
            return {"D", call.spec().head_dim, false};
        case 'P':
            return {"P", 1, true};
        case 'p':
            return {"P", call.tensors.partial_output.shape[0], false};
        default:
            return {};
    }
}

/// Elements of the last axis of cache or scale.
std::int64_t row_elements(const KernelSpec& spec, Type type) {
    return type == Type::kScale ? gen::scale_elements(spec) : gen::code_elements(spec);
}

Axis layout_axis(const Call& call, const gen::Axes& axes, char axis, Type type) {
    static constexpr std::string_view kNames[] = {"N", "T", "L", "2", "Hkv", "D", "t", "d"};
    const std::string_view name = kNames[std::string_view("NTL2HDtd").find(axis)];
    return {name, call.batch.cache.extent(axes, axis, row_elements(call.spec(), type)), false};
}

const gen::Axes& axes_of(const CacheView& cache, const Tensor& tensor) {
    return cache.axes(tensor.part == gen::Part::kValue ? 1 : 0);
}

ViewRule layout_rule(const Call& call, const Tensor& tensor, Use use) {
    const gen::Axes& axes = axes_of(call.batch.cache, tensor);
    ViewRule rule{tensor.name, type_of(call.spec(), tensor.type), axes.rank, {}, true, is_written(use)};
    std::ranges::transform(axes.order(), rule.axes.begin(),
                           [&](char axis) { return layout_axis(call, axes, axis, tensor.type); });
    rule.row_axes = {axes.find('D'), axes.find('d')};
    if (axes.find('2') < axes.find('D')) rule.free_axis = axes.find('2');  // else rows of keys and values interleave
    rule.written_unless = kIfStored;
    return rule;
}

ViewRule plain_rule(const Call& call, const Tensor& tensor, Use use) {
    const std::string_view mask_axes = call.spec().attn_mask == 3 ? "HSW" : "SW";
    const std::string_view axes = !tensor.axes.empty() ? tensor.axes : mask_axes;
    const bool contiguous = axes.size() == 1 || axes.back() != 'H';  // rows of lse need not be
    ViewRule rule{
        tensor.name,    type_of(call.spec(), tensor.type), static_cast<std::int32_t>(axes.size()), {}, contiguous,
        is_written(use)};
    std::ranges::transform(axes, rule.axes.begin(), [&](char axis) { return axis_of(call, axis); });
    return rule;
}

// ---- The checks -------------------------------------------------------------------------------------------

/// Why this call takes no such tensor.
std::string_view no_use(const Call& call, const Tensor& tensor) {
    switch (tensor.use) {
        case Use::kMask:
            return "the spec's attn_mask is 0";
        case Use::kSinks:
            return "the spec's has_sinks is 0";
        case Use::kCache:
        case Use::kScale:
            return unused_cache(call, tensor);
        case Use::kOutputOpt:
            return "the batch has no kvstarts, by which its rows have their places";
        default:
            return "the plan's options.stores_nothing is 1";
    }
}

std::unexpected<gen::Error> refuse_given(std::string_view name, std::string_view why) {
    return gen::fail(KVJIT_BAD_ARGUMENT, std::string(name), text(name, " is given; ", why));
}

Result<void> check_absent(const Call& call, const Tensor& tensor, std::optional<Use> use) {
    if (!use || is_optional(*use) || call.batch.batch_size == 0) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, std::string(tensor.name),
                     text(tensor.name, " is missing; ", op_name(call.spec()), " needs it"));
}

Result<void> check_tensor(const Call& call, const Tensor& tensor) {
    const kvjit_tensor& view = call.tensors.*tensor.member;
    const std::optional<Use> use = use_of(call, tensor);
    if (!is_present(view)) return check_absent(call, tensor, use);
    if (!use) return refuse_given(tensor.name, no_use(call, tensor));
    return check_view(view, is_cache(tensor) ? layout_rule(call, tensor, *use) : plain_rule(call, tensor, *use));
}

/// Checks the tensors that the operator takes, and that there are no others. Both lists are in kvjit_tensors' order.
Result<void> check_each(const Call& call) {
    std::span<const Tensor> taken = gen::operator_of(call.spec()).tensors;
    for (const gen::TensorName& tensor : gen::tensor_names()) {
        if (auto unused = check_reserved(tensor.name, call.tensors.*tensor.member); !unused) return unused;
        if (!taken.empty() && taken.front().member == tensor.member) {
            if (Result<void> result = check_tensor(call, taken.front()); !result) return result;
            taken = taken.subspan(1);
        } else if (is_present(call.tensors.*tensor.member)) {
            return refuse_given(tensor.name, text(op_name(call.spec()), " takes none"));
        }
    }
    return {};
}

Result<void> check_pair(const kvjit_tensors& tensors) {
    const bool has_key = is_present(tensors.current_key);
    if (has_key == is_present(tensors.current_value)) return {};
    const std::string_view missing = has_key ? "current_value" : "current_key";
    return gen::fail(KVJIT_BAD_ARGUMENT, std::string(missing),
                     text(missing, " is missing; current_key and current_value come together"));
}

/// Whether both have a first element, at the same address.
bool begin_together(const kvjit_tensor& a, const kvjit_tensor& b) {
    return a.data != nullptr && a.data == b.data && !is_empty(a) && !is_empty(b);
}

Result<void> check_overlap(const Call& call, const Tensor& output) {
    for (const Tensor& other : gen::operator_of(call.spec()).tensors) {
        if (&other == &output || !begin_together(call.tensors.*output.member, call.tensors.*other.member)) continue;
        return gen::fail(
            KVJIT_BAD_ARGUMENT, std::string(output.name),
            text(output.name, " begins where ", other.name, " begins; what a call writes may overlap no other tensor",
                 is_cache(output) ? kIfStored : ""));
    }
    return {};
}

Result<void> check_overlaps(const Call& call) {
    for (const Tensor& tensor : gen::operator_of(call.spec()).tensors) {
        const std::optional<Use> use = use_of(call, tensor);
        if (!use || !is_written(*use)) continue;
        if (Result<void> result = check_overlap(call, tensor); !result) return result;
    }
    return {};
}

/// Contiguous elements of a row, on the last axis.
std::int64_t neighbours(const CacheView& cache, const Tensor& tensor, const kvjit_tensor& view) {
    const bool of_row = !is_cache(tensor) || std::string_view("Dd").contains(axes_of(cache, tensor).order().back());
    return of_row ? view.shape[view.rank - 1] : 1;
}

Result<void> check_strides(std::string_view name, const kvjit_tensor& view, std::int64_t neighbours) {
    const std::int64_t size = gen::dtype_bytes(static_cast<kvjit_dtype>(view.dtype));
    const std::int64_t unit = std::max<std::int64_t>(1, widest_access(static_cast<int>(neighbours * size)) / size);
    for (std::int32_t axis = 0; axis + 1 < view.rank; ++axis) {
        if (view.strides[axis] % unit == 0) continue;
        return refuse(KVJIT_BAD_SHAPE, text(name, ".strides[", axis, "]"), view.strides[axis], unit,
                      text("CUDA kernels take multiples of ", unit));
    }
    return {};
}

Result<void> check_layer(const Call& call, std::int64_t layer_idx) {
    const std::int64_t layers = call.batch.cache.num_layers();
    if (!gen::has_cache(call.spec()) || (layer_idx >= 0 && layer_idx < layers)) return {};
    return refuse(KVJIT_BAD_ARGUMENT, "layer_idx", layer_idx, layers,
                  text("the cache has layers 0 to num_layers - 1, num_layers is ", layers));
}

}  // namespace

Result<void> check_row_alignment(const BatchView& batch, const kvjit_tensors& tensors) {
    for (const Tensor& tensor : gen::operator_of(batch.spec).tensors) {
        const kvjit_tensor& view = tensors.*tensor.member;
        const bool rows = tensor.axes.empty() ? tensor.type != Type::kT1 : tensor.type != Type::kF32;
        if (!rows || !is_present(view) || is_empty(view)) continue;
        const std::int64_t past = misalignment(view.data, kCudaAlignment);
        if (past != 0) return refuse_misaligned(std::string(tensor.name), past, kCudaAlignment);
        if (Result<void> strides = check_strides(tensor.name, view, neighbours(batch.cache, tensor, view)); !strides)
            return strides;
    }
    return {};
}

BatchRows rows_of(const KernelSpec& spec, const kvjit_batch& batch) {
    return {query_rows(spec, batch), key_rows(spec, batch)};
}

Result<void> check_tensors(const BatchView& batch, const BatchRows& rows, const kvjit_tensors& tensors,
                           std::int64_t layer_idx) {
    const Call call{batch, rows, tensors};
    if (Result<void> each = check_each(call); !each) return each;
    if (Result<void> pair = check_pair(tensors); !pair) return pair;
    if (Result<void> layer = check_layer(call, layer_idx); !layer) return layer;
    return check_overlaps(call);
}

}  // namespace kvjit::rt

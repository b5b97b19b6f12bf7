#include "check/view.h"

#include <bit>
#include <cstdlib>
#include <initializer_list>

#include "check/arithmetic.h"
#include "check/fault.h"
#include "generator/spec.h"

namespace kvjit::rt {
namespace {

using gen::Result;

/// The caller's number may be no kvjit_dtype at all.
std::string type_text(std::int32_t dtype) {
    if (dtype < KVJIT_AUTO || dtype > KVJIT_I64) return text("unknown (", dtype, ")");
    return std::string(gen::dtype_name(static_cast<kvjit_dtype>(dtype)));
}

Result<void> check_type(const kvjit_tensor& tensor, const ViewRule& rule) {
    if (tensor.dtype == rule.dtype) return {};
    std::string argument = text(rule.name, ".dtype");
    std::string message = text(argument, " is ", type_text(tensor.dtype), "; it takes ", type_text(rule.dtype));
    return gen::fail(KVJIT_BAD_DTYPE, std::move(argument), std::move(message), tensor.dtype, rule.dtype);
}

Result<void> check_rank(const kvjit_tensor& tensor, const ViewRule& rule) {
    if (tensor.rank == rule.rank) return {};
    std::string axes;
    for (int i = 0; i < rule.rank; ++i) axes += text(i == 0 ? "" : ", ", rule.axes[i].name);
    return refuse(KVJIT_BAD_SHAPE, text(rule.name, ".rank"), tensor.rank, rule.rank,
                  text("it takes ", rule.rank, ", (", axes, ")"));
}

Result<void> check_extents(const kvjit_tensor& tensor, const ViewRule& rule) {
    for (int i = 0; i < rule.rank; ++i) {
        const Axis& axis = rule.axes[i];
        const std::int64_t extent = tensor.shape[i];
        if (axis.at_least ? extent >= axis.extent : extent == axis.extent) continue;
        return refuse(KVJIT_BAD_SHAPE, text(rule.name, ".shape[", i, "]"), extent, axis.extent,
                      text("axis ", axis.name, " takes ", axis.at_least ? "at least " : "", axis.extent));
    }
    return {};
}

Result<void> check_pointer(const kvjit_tensor& tensor, const ViewRule& rule) {
    if (tensor.data == nullptr) {
        return gen::fail(KVJIT_BAD_ARGUMENT, text(rule.name, ".data"),
                         text(rule.name, ".data is null, and the tensor is not empty"));
    }
    const std::int64_t bytes = gen::dtype_bytes(rule.dtype);
    const std::int64_t past = misalignment(tensor.data, bytes);
    if (past == 0) return {};
    return refuse_misaligned(text(rule.name, ".data"), past, bytes);
}

std::string stride_name(const ViewRule& rule, int axis) {
    return text(rule.name, ".strides[", axis, "]");
}

std::int64_t step(const kvjit_tensor& tensor, int axis) {
    return std::abs(tensor.strides[axis]);
}

/// The most elements whose bytes fit 64 bits. Element sizes are powers of two: no division, as this runs once a layer.
std::int64_t most_elements(const ViewRule& rule) {
    return kMaxInt64 >> std::countr_zero(static_cast<std::uint64_t>(gen::dtype_bytes(rule.dtype)));
}

/// Also checks axes that are never stepped along: the runtime turns every stride into bytes.
Result<void> check_stride_sizes(const kvjit_tensor& tensor, const ViewRule& rule) {
    const std::int64_t most = most_elements(rule);
    for (int i = 0; i < rule.rank; ++i) {
        const std::int64_t stride = tensor.strides[i];
        if (stride <= most && stride >= -most) continue;
        return refuse(KVJIT_BAD_SHAPE, stride_name(rule, i), stride, most,
                      text("in bytes it has to fit 64 bits, so it takes at most ", most));
    }
    return {};
}

Result<void> check_signs(const kvjit_tensor& tensor, const ViewRule& rule) {
    for (int i = 0; i < rule.rank; ++i) {
        if (tensor.shape[i] <= 1 || tensor.strides[i] >= 0 || i == rule.free_axis) continue;
        return refuse(KVJIT_BAD_SHAPE, stride_name(rule, i), tensor.strides[i], 0, "it takes 0 or more");
    }
    const int last = rule.rank - 1;
    if (!rule.contiguous || tensor.shape[last] <= 1 || tensor.strides[last] == 1) return {};
    return refuse(KVJIT_BAD_SHAPE, stride_name(rule, last), tensor.strides[last], 1,
                  text("axis ", rule.axes[last].name, " is contiguous, so it takes 1"));
}

Result<void> check_span(const kvjit_tensor& tensor, const ViewRule& rule) {
    const std::int64_t most = most_elements(rule);
    std::int64_t room = most - 1;  // elements after the first one
    for (int i = 0; i < rule.rank; ++i) {
        const std::int64_t steps = tensor.shape[i] - 1;
        std::int64_t reach = 0;
        if (!__builtin_mul_overflow(steps, step(tensor, i), &reach) && reach <= room) {
            room -= reach;
            continue;
        }
        if (steps > room) {  // too many at any stride
            return refuse(KVJIT_BAD_SHAPE, text(rule.name, ".shape[", i, "]"), tensor.shape[i],
                          room / step(tensor, i) + 1,
                          text("the tensor may span at most ", most, " elements, so with its stride of ",
                               tensor.strides[i], " it takes at most ", room / step(tensor, i) + 1));
        }
        const std::int64_t largest = room / steps;
        return refuse(KVJIT_BAD_SHAPE, stride_name(rule, i), tensor.strides[i], largest,
                      text("the tensor may span at most ", most, " elements, so it takes at most ", largest));
    }
    return {};
}

/// The axes with an extent above 1 whose stride the caller chooses, by ascending stride, equal strides from the last
/// axis on. Returns their number.
int by_stride(const kvjit_tensor& tensor, const ViewRule& rule, std::array<int, KVJIT_MAX_RANK>& order) {
    int count = 0;
    for (int axis = rule.rank - (rule.contiguous ? 2 : 1); axis >= 0; --axis) {
        if (tensor.shape[axis] <= 1 || axis == rule.free_axis) continue;
        int place = count++;
        for (; place > 0 && tensor.strides[order[place - 1]] > tensor.strides[axis]; --place) {
            order[place] = order[place - 1];
        }
        order[place] = axis;
    }
    return count;
}

Result<void> check_free_axis(const kvjit_tensor& tensor, const ViewRule& rule) {
    std::int64_t row = 1;
    for (const int axis : rule.row_axes) {
        if (axis >= 0) row += (tensor.shape[axis] - 1) * step(tensor, axis);
    }
    if (rule.free_axis < 0 || tensor.shape[rule.free_axis] <= 1 || step(tensor, rule.free_axis) >= row) return {};
    return refuse(
        KVJIT_BAD_SHAPE, stride_name(rule, rule.free_axis), tensor.strides[rule.free_axis], row,
        text("elements of a written tensor may not overlap, so it takes at least ", row, rule.written_unless));
}

/// No sum below overflows: check_span has added the same reaches.
Result<void> check_nesting(const kvjit_tensor& tensor, const ViewRule& rule) {
    std::array<int, KVJIT_MAX_RANK> order{};
    const int count = by_stride(tensor, rule, order);
    std::int64_t reach = rule.contiguous ? tensor.shape[rule.rank - 1] - 1 : 0;
    for (int i = 0; i < count; ++i) {
        const int axis = order[i];
        const std::int64_t stride = tensor.strides[axis];
        if (stride <= reach) {
            return refuse(KVJIT_BAD_SHAPE, stride_name(rule, axis), stride, reach + 1,
                          text("elements of a written tensor may not overlap, so it takes at least ", reach + 1,
                               rule.written_unless));
        }
        reach += (tensor.shape[axis] - 1) * stride;
    }
    return check_free_axis(tensor, rule);
}

using Step = Result<void> (*)(const kvjit_tensor&, const ViewRule&);

Result<void> run_steps(std::initializer_list<Step> steps, const kvjit_tensor& tensor, const ViewRule& rule) {
    for (const Step check : steps) {
        if (Result<void> result = check(tensor, rule); !result) return result;
    }
    return {};
}

}  // namespace

Result<void> check_reserved(std::string_view name, const kvjit_tensor& tensor) {
    for (const std::int64_t word : tensor.reserved) {
        if (word != 0) return refuse(KVJIT_BAD_ARGUMENT, text(name, ".reserved"), word, 0, "it takes 0");
    }
    return {};
}

Result<void> check_view(const kvjit_tensor& tensor, const ViewRule& rule) {
    Result<void> outline = run_steps({check_type, check_rank, check_extents, check_stride_sizes}, tensor, rule);
    if (!outline || is_empty(tensor)) return outline;
    Result<void> memory = run_steps({check_pointer, check_signs, check_span}, tensor, rule);
    return !memory || !rule.written ? memory : check_nesting(tensor, rule);
}

}  // namespace kvjit::rt

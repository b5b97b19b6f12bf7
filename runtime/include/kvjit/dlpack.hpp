// DLPack tensors as views. Needs DLPack's header, which kvjit.hpp does without.
#pragma once

#include <dlpack/dlpack.h>

#include <string>

#include "kvjit/kvjit.hpp"

namespace kvjit {
namespace detail {

/// KVJIT_AUTO for a type that kvjit has no use for.
inline kvjit_dtype dlpack_dtype(const DLDataType& type) {
    if (type.lanes != 1) return KVJIT_AUTO;
    if (type.code == kDLBfloat) return type.bits == 16 ? KVJIT_BF16 : KVJIT_AUTO;
    if (type.code == kDLFloat) return type.bits == 32 ? KVJIT_F32 : type.bits == 16 ? KVJIT_F16 : KVJIT_AUTO;
    if (type.code == kDLUInt) return type.bits == 8 ? KVJIT_U8 : KVJIT_AUTO;
    if (type.code != kDLInt) return KVJIT_AUTO;
    return type.bits == 8 ? KVJIT_I8 : type.bits == 32 ? KVJIT_I32 : type.bits == 64 ? KVJIT_I64 : KVJIT_AUTO;
}

/// Whether kernels that run on a device of type `runs_on` may reach memory of type `memory` as it lies.
inline bool dlpack_reaches(DLDeviceType runs_on, DLDeviceType memory) {
    return memory == runs_on || memory == kDLCUDAHost || memory == kDLCUDAManaged;
}

inline Result<void> check_dlpack_device(const DLDevice& memory, const DLDevice& runs_on) {
    if (runs_on.device_type != kDLCPU && runs_on.device_type != kDLCUDA) {
        return refusal(KVJIT_BAD_ARGUMENT, "runs_on.device_type", runs_on.device_type, kDLCUDA,
                       "it takes kDLCPU (1) or kDLCUDA (2)");
    }
    if (!dlpack_reaches(runs_on.device_type, memory.device_type)) {
        const std::string own =
            runs_on.device_type == kDLCPU ? "a CPU, it takes kDLCPU (1)" : "CUDA, it takes kDLCUDA (2)";
        return refusal(KVJIT_BAD_ARGUMENT, "device.device_type", memory.device_type, runs_on.device_type,
                       "for kernels on " + own + ", kDLCUDAHost (3) or kDLCUDAManaged (13)");
    }
    if (memory.device_type == kDLCUDA && memory.device_id != runs_on.device_id) {
        return refusal(KVJIT_BAD_ARGUMENT, "device.device_id", memory.device_id, runs_on.device_id,
                       "the kernels run on GPU " + std::to_string(runs_on.device_id));
    }
    return {};
}

}  // namespace detail

/// A view of the same memory; the DLTensor may go as long as its memory stays. Strides null: row-major.
/// `runs_on` is the device of the kernels that get the view: {kDLCPU, 0} for CPU targets and cuda-emulated,
/// {kDLCUDA, N} for the target cuda:N. It reaches its own memory (a GPU none of another GPU), kDLCUDAHost and
/// kDLCUDAManaged; nothing is copied, and the CUDA runtime isn't asked. To have what others wrote there arrive first is
/// the caller's business: the plan's stream, or for a CPU a synchronisation.
/// Errors: KVJIT_BAD_ARGUMENT (device, shape null), KVJIT_BAD_DTYPE, KVJIT_BAD_SHAPE (rank over KVJIT_MAX_RANK).
/// Thread-safe.
inline Result<Tensor> from_dlpack(const DLTensor& from, DLDevice runs_on = {kDLCPU, 0}) {
    if (auto right = detail::check_dlpack_device(from.device, runs_on); !right) return right.error();
    const kvjit_dtype dtype = detail::dlpack_dtype(from.dtype);
    if (dtype == KVJIT_AUTO) {
        return detail::refusal(KVJIT_BAD_DTYPE, "dtype.bits", from.dtype.bits, 64,
                               "of type code " + std::to_string(from.dtype.code) + ", " +
                                   std::to_string(from.dtype.lanes) +
                                   " lanes; it takes float32, float16, int8, uint8, int32 or int64, one lane");
    }
    if (from.ndim < 0 || from.ndim > KVJIT_MAX_RANK) {
        return detail::refusal(KVJIT_BAD_SHAPE, "ndim", from.ndim, KVJIT_MAX_RANK,
                               "it takes 0 to " + std::to_string(KVJIT_MAX_RANK) + " axes");
    }
    if (from.ndim > 0 && from.shape == nullptr) {
        return Error(KVJIT_BAD_ARGUMENT, "shape", "shape is null; it takes an extent for each axis");
    }
    void* data = from.data == nullptr ? nullptr : static_cast<char*>(from.data) + from.byte_offset;
    Tensor tensor;
    static_cast<kvjit_tensor&>(tensor) = kvjit_tensor_contiguous(data, dtype, from.ndim, from.shape);
    for (int axis = 0; from.strides != nullptr && axis < from.ndim; ++axis) tensor.strides[axis] = from.strides[axis];
    return tensor;
}

}  // namespace kvjit

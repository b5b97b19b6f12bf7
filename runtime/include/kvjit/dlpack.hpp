// DLPack tensors as views. Needs DLPack's header, which kvjit.hpp does without.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdio>

#include "kvjit/kvjit.hpp"

namespace kvjit {
namespace detail {

inline Error dlpack_error(kvjit_status status, const char* argument, std::int64_t value, std::int64_t limit,
                          const char* says) {
    Error error;
    error.get()->status = status;
    error.get()->value = value;
    error.get()->limit = limit;
    std::snprintf(error.get()->argument, sizeof error.get()->argument, "%s", argument);
    std::snprintf(error.get()->message, sizeof error.get()->message, "%s is %lld; %s", argument,
                  static_cast<long long>(value), says);
    return error;
}

/// KVJIT_AUTO for a type that kvjit has no use for.
inline kvjit_dtype dlpack_dtype(const DLDataType& type) {
    if (type.lanes != 1) return KVJIT_AUTO;
    if (type.code == kDLFloat) return type.bits == 32 ? KVJIT_F32 : type.bits == 16 ? KVJIT_F16 : KVJIT_AUTO;
    if (type.code == kDLUInt) return type.bits == 8 ? KVJIT_U8 : KVJIT_AUTO;
    if (type.code != kDLInt) return KVJIT_AUTO;
    return type.bits == 8 ? KVJIT_I8 : type.bits == 32 ? KVJIT_I32 : type.bits == 64 ? KVJIT_I64 : KVJIT_AUTO;
}

}  // namespace detail

/// A view of the same memory; the DLTensor may go as long as its memory stays. Strides null: row-major.
/// Errors: KVJIT_BAD_ARGUMENT (device), KVJIT_BAD_DTYPE, KVJIT_BAD_SHAPE (rank over KVJIT_MAX_RANK). Thread-safe.
inline Result<Tensor> from_dlpack(const DLTensor& from) {
    if (from.device.device_type != kDLCPU) {
        return detail::dlpack_error(KVJIT_BAD_ARGUMENT, "device.device_type", from.device.device_type, kDLCPU,
                                    "it takes kDLCPU");
    }
    const kvjit_dtype dtype = detail::dlpack_dtype(from.dtype);
    if (dtype == KVJIT_AUTO) {
        return detail::dlpack_error(KVJIT_BAD_DTYPE, "dtype.bits", from.dtype.bits, 64,
                                    "it takes float32, float16, int8, uint8, int32 or int64, one lane");
    }
    if (from.ndim < 0 || from.ndim > KVJIT_MAX_RANK) {
        return detail::dlpack_error(KVJIT_BAD_SHAPE, "ndim", from.ndim, KVJIT_MAX_RANK, "it takes 0 to 6 axes");
    }
    void* data = from.data == nullptr ? nullptr : static_cast<char*>(from.data) + from.byte_offset;
    Tensor tensor;
    static_cast<kvjit_tensor&>(tensor) = kvjit_tensor_contiguous(data, dtype, from.ndim, from.shape);
    for (int axis = 0; from.strides != nullptr && axis < from.ndim; ++axis) tensor.strides[axis] = from.strides[axis];
    return tensor;
}

}  // namespace kvjit

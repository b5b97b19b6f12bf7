// NVIDIA's driver: opened at first use, with errors that give advice.
#pragma once

#include <string>
#include <string_view>

#include "cuda/driver_api.h"

namespace kvjit::rt {

/// An open libcuda. Immutable, thread-safe.
class Driver {
public:
    /// `candidates`: paths or names of libcuda; the first that opens is used. Errors: KVJIT_CUDA_ERROR where none
    /// opens, or it is older than CUDA 12.0. Touches no GPU.
    static gen::Result<Driver> open(std::span<const std::string> candidates);

    const cuda::DriverApi& api() const { return api_; }
    /// The newest CUDA that it supports: 12040 for 12.4.
    int version() const { return version_; }

    /// Call before anything that concerns a GPU; only the first call takes time. Errors: KVJIT_CUDA_ERROR.
    gen::Result<void> initialise() const;

    /// Succeeds for kSuccess. `what`: a clause, "allocating 512 bytes". Errors: KVJIT_OUT_OF_MEMORY, KVJIT_CUDA_ERROR;
    /// the message has CUDA's name and sentence for `code`, and advice.
    gen::Result<void> check(cuda::Code code, std::string_view what) const {
        if (code == cuda::kSuccess) return {};
        return std::unexpected(error(code, what));
    }
    gen::Error error(cuda::Code code, std::string_view what) const;

private:
    Driver() = default;

    cuda::DriverApi api_{};
    int version_ = 0;
};

/// This machine's driver: opened at the first call and never closed.
const gen::Result<Driver>& shared_driver();

/// NVRTC opens the libcuda.so.1 that the linker finds and, if it has cuInit, calls cuGetExportTable without checking
/// that it exists. Errors: KVJIT_CUDA_ERROR for such an incomplete driver; none without a driver. `name`: for tests.
gen::Result<void> check_driver_for_nvrtc(const std::string& name = "libcuda.so.1");

/// "12.4" of 12040.
std::string cuda_version_text(int version);

}  // namespace kvjit::rt

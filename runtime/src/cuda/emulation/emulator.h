// CUDA kernels on this machine's CPU, slow and checked: what tests and kernel authors have where there is no GPU.
//
// A kernel is the same text that NVRTC gets, compiled by Clang with templates/cuda/machine/emulated.h. Blocks run
// one after the other, a block's threads as fibers, in an order that a seed decides: same seed, same run.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/device.h"

namespace kvjit::rt {

struct EmulatorOptions {
    std::uint64_t seed = 1;
};

/// From $KVJIT_EMULATION_SEED, a number; 1 where it isn't set, or set-user-id. Errors: KVJIT_CUDA_ERROR.
gen::Result<EmulatorOptions> emulator_options();

/// Launches run at once and in parallel where several threads ask for them. Errors of launch, KVJIT_CUDA_ERROR: what
/// the kernel did wrong, with the template's lines; tensors then hold whatever it had written.
std::unique_ptr<Device> make_emulator(const EmulatorOptions& options);

}  // namespace kvjit::rt

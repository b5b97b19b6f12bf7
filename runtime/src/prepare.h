// Preparing the kernels of many specs at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine.h"

namespace kvjit::rt {

struct PrepareOptions {
    std::uint32_t programs = KVJIT_ALL_PROGRAMS;
    std::int32_t num_threads = 0;  // that work, the caller included; 0: one for each core that the caller may run on
    /// `spec` was dealt with, the `done`-th one; `failure` null: it is ready. One call at a time. May be empty.
    std::function<void(std::size_t done, const gen::KernelSpec& spec, const gen::Error* failure)> progress;
};

/// See kvjit_engine_prepare. `targets` are interned (targets.h).
gen::Result<void> prepare_all(Engine& engine, std::span<const gen::KernelSpec> specs, const gen::TargetList& targets,
                              const PrepareOptions& options);

}  // namespace kvjit::rt

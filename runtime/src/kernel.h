// A kernel: a checked spec on a target, its programs, and the images that have been asked for so far.
#pragma once

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "engine.h"

namespace kvjit::rt {

/// Thread-safe. Belongs to its engine, which a KernelPtr keeps alive.
class Kernel {
public:
    /// `target`: what its images are compiled for. `programs`: what lower() made of the spec for it.
    Kernel(Engine& engine, const gen::KernelSpec& spec, gen::Target target, std::vector<gen::Program> programs);

    const gen::KernelSpec& spec() const { return spec_; }
    const gen::Target& target() const { return target_; }
    Engine& engine() const { return engine_; }

    const std::vector<gen::Program>& programs() const { return programs_; }
    /// How the program is launched; all zero if the op lacks it.
    LaunchShape launch(gen::ProgramKind kind) const;
    /// Bits of kvjit_phases that the op has.
    std::uint32_t phases() const { return phases_; }
    /// Has the images of `phases` ready; compiles missing ones in parallel. Bits that the op lacks are passed over;
    /// KVJIT_BAD_ARGUMENT for one that no op has.
    gen::Result<void> prepare(std::uint32_t phases);
    /// Entry point of a prepared program, null before prepare.
    void* entry(gen::ProgramKind kind) const { return entries_[static_cast<std::size_t>(kind)].load(); }
    /// The stage's text of each program in `phases`. KVJIT_BAD_ARGUMENT where there is none.
    gen::Result<std::string> emit(std::uint32_t phases, kvjit_stage stage);

private:
    /// Any exception comes out where it is waited for.
    std::future<gen::Result<void>> prepare_beside(const gen::Program& program);
    gen::Result<void> prepare_one(const gen::Program& program);
    std::vector<const gen::Program*> missing(std::uint32_t phases) const;

    Engine& engine_;
    gen::KernelSpec spec_;
    const gen::Target target_;
    std::vector<gen::Program> programs_;
    std::uint32_t phases_ = 0;
    std::mutex images_mutex_;
    std::array<ImagePtr, gen::kProgramKinds> images_;
    std::array<std::atomic<void*>, gen::kProgramKinds> entries_{};
};

}  // namespace kvjit::rt

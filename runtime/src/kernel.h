// A kernel: a checked spec, its programs on each target that may serve it, and the images that were asked for so far.
#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "images/images.h"

namespace kvjit::rt {

/// Something for each program that there is.
template <class T>
class PerProgram {
public:
    const T& operator[](kvjit_programs program) const { return all_[gen::ProgramInfo::place_of(program)]; }
    T& operator[](kvjit_programs program) { return all_[gen::ProgramInfo::place_of(program)]; }
    auto begin() const { return all_.begin(); }
    auto end() const { return all_.end(); }

private:
    std::vector<T> all_ = std::vector<T>(gen::programs().size());
};
/// Null where nobody has asked for the image yet, or the op lacks the program.
using ImageSet = PerProgram<ImagePtr>;

/// The image that a kernel runs for one of its programs, or would run.
struct KernelImage {
    const gen::Target* target;
    const gen::Program* program;
    std::string identity;
    OriginPtr origin;  // null: it would be compiled
    bool is_loaded = false;
};

/// Which variants serve a spec's programs, and why the others don't.
struct Explanation {
    std::string text;
    gen::Result<void> served;  // else why there is no such kernel
};
/// Of the kernel that Kernel::make would make. Errors: KVJIT_BAD_SPEC, KVJIT_BAD_ARGUMENT where the op has none of the
/// programs in `asked`.
gen::Result<Explanation> explain_kernel(const Images& images, const gen::KernelSpec& spec,
                                        const gen::TargetList& targets, std::uint32_t asked);

/// Whether each of these bits stands for a program of some op. Errors: KVJIT_BAD_ARGUMENT.
gen::Result<void> check_programs(std::uint32_t asked);

/// Thread-safe.
class Kernel {
public:
    /// Checks the spec, compiles nothing. `targets`: what may serve it, best first. A kernel takes all its images from
    /// one of them, if it can. Errors: KVJIT_BAD_SPEC.
    static gen::Result<KernelPtr> make(std::shared_ptr<Images> images, const gen::KernelSpec& spec,
                                       const gen::TargetList& targets);

    const gen::KernelSpec& spec() const { return spec_; }
    /// The best target that the compiler knows: what is compiled is for it. Images that were found may be of a lesser
    /// one.
    const gen::Target& target() const { return lowered_[lowered_.front().made_as].target; }
    /// Errors: KVJIT_BAD_TARGET where this build has none for the target.
    gen::Result<Backend*> backend() const { return images_->backend(target()); }

    /// Of kvjit_programs: those that the op has on its target.
    std::uint32_t bits() const { return gen::program_bits(spec_, target().backend); }
    /// The images of `asked`, and what else was asked for before; compiles missing ones in parallel. Bits that the op
    /// lacks are passed over; KVJIT_BAD_ARGUMENT for one that no op has.
    gen::Result<ImageSet> prepare(std::uint32_t asked);
    /// Takes what memory and stores have of `asked`, all at once, so that what they have decides on the target before
    /// anything is compiled. The bits that are left. Errors: prepare's.
    gen::Result<std::uint32_t> take_stored(std::uint32_t asked);
    /// Of each program in `asked`, as prepare would take or make it now. Whatever they point to is the kernel's.
    /// Errors: KVJIT_BAD_ARGUMENT where there is none; without compiling, what keeps a store from answering.
    gen::Result<std::vector<KernelImage>> images(std::uint32_t asked) const;
    /// What the stage holds for each of these images. See kvjit_kernel_emit.
    gen::Result<std::string> emit(std::uint32_t asked, kvjit_stage stage) const;

private:
    /// All programs on one target; each target has the same kinds, in the same order.
    struct Lowered {
        gen::Target target;
        std::vector<gen::Program> programs;
        std::size_t made_as;  // the number of the target that the compiler makes code of instead; of itself, if it can
    };

    Kernel(std::shared_ptr<Images> images, const gen::KernelSpec& spec, std::vector<Lowered> lowered);

    /// On the target that was asked for.
    const std::vector<gen::Program>& programs() const { return lowered_.front().programs; }
    /// Numbers of the programs in `asked` that have no image yet.
    std::vector<std::size_t> missing(std::uint32_t asked) const;
    /// Tells who traces that they were asked for.
    void trace(const std::vector<std::size_t>& wanted) const;
    /// On each target: the one that the kernel's other images are of first, then the best.
    std::vector<Candidate> candidates(std::size_t program) const;
    std::vector<Candidate> candidates(std::size_t program, std::size_t first) const;
    /// What would be compiled: for the target that the kernel's other images are of, or what the compiler knows of it.
    Candidate to_make(std::size_t program) const;
    Candidate to_make(std::size_t program, std::size_t first) const;
    /// The number of a target that a candidate has.
    std::size_t number_of(const gen::Target& target) const;
    /// A program's image as it is now; nothing that is not loaded.
    KernelImage loaded(std::size_t program) const;
    /// The image of a program that memory or a store has, and the number of its target; else what would be compiled.
    gen::Result<std::optional<std::size_t>> locate(KernelImage& image, std::size_t program, std::size_t first) const;
    /// Numbers of the programs in `asked` that must be made, once what memory and stores have is taken.
    gen::Result<std::vector<std::size_t>> unknown(std::uint32_t asked);
    /// Takes what memory and stores have of `wanted`, and leaves in it what they lack.
    gen::Result<void> take_known(std::vector<std::size_t>& wanted);
    /// Whether the target is the one that all images should be of, which it becomes if there is none.
    bool settles(const gen::Target& target);
    void take(std::size_t program, const gen::Target& target, ImagePtr image);
    gen::Result<void> make_all(const std::vector<std::size_t>& wanted);
    gen::Result<void> make_one(std::size_t program);
    /// Any exception comes out where it is waited for.
    std::future<gen::Result<void>> make_beside(std::size_t program);

    std::shared_ptr<Images> images_;
    gen::KernelSpec spec_;
    std::vector<Lowered> lowered_;
    std::mutex finding_;                  // one thread at a time decides on the target
    mutable std::mutex mutex_;            // guards what follows
    std::optional<std::size_t> settled_;  // the target that all images should be of
    ImageSet set_;
    PerProgram<std::size_t> target_of_;  // of each image
};

}  // namespace kvjit::rt

// A kernel: a checked spec, its programs on each target that may serve it, and the images requested so far.
#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "generator/decode_tokens.h"
#include "images/images.h"
#include "run_counts.h"

namespace kvjit::rt {

/// An element for each program.
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
/// Null: the image was not requested yet, or the op lacks the program.
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
    gen::Result<void> served;  // or why there is no such kernel
};
/// Explains the kernel that Kernel::make would make. Errors: KVJIT_BAD_SPEC, KVJIT_BAD_ARGUMENT where the op has none
/// of the programs in `asked`.
gen::Result<Explanation> explain_kernel(const Images& images, const gen::KernelSpec& spec,
                                        const gen::TargetList& targets, std::uint32_t asked);

/// Whether each of these bits stands for a program of some op. Errors: KVJIT_BAD_ARGUMENT.
gen::Result<void> check_programs(std::uint32_t asked);

/// Thread-safe.
class Kernel {
public:
    /// Checks the spec, compiles nothing. `targets`: those that may serve it, best first. A kernel takes all its images
    /// from one of them, if possible. Where AMX is refused, it takes none from those for which it has programs that use
    /// AMX's tiles, unless there is no other. Errors: KVJIT_BAD_SPEC.
    static gen::Result<KernelPtr> make(std::shared_ptr<Images> images, const gen::KernelSpec& spec,
                                       const gen::TargetList& targets);

    const gen::KernelSpec& spec() const { return spec_; }
    /// The best target that the compiler knows, for which it compiles. Images from stores may be of a lesser target.
    const gen::Target& target() const { return lowered_[made_as(0)].target; }
    /// Errors: KVJIT_BAD_TARGET if this build has none for the target.
    gen::Result<Backend*> backend() const { return images_->backend(target()); }
    /// The numbers of a sequence's new tokens that decode takes on the target, a CPU. If AMX decides which program
    /// takes one of `in_batch`, the permission to use it is asked for first: after a refusal all sequences are split as
    /// on a machine without AMX. So they are where a store has programs without AMX for the kernel.
    gen::TokenCounts decode_tokens(const gen::TokenCounts& in_batch) const;

    const std::shared_ptr<Recorder>& recorder() const { return images_->recorder(); }
    const Log& log() const { return images_->log(); }
    /// Whether the engine counts runs.
    bool counts_runs() const { return images_->counts_runs(); }
    RunCounts& run_counts() { return run_counts_; }

    /// The programs that the op has on its target, as bits of kvjit_programs.
    std::uint32_t bits() const { return gen::program_bits(spec_, target().backend); }
    /// The images of `asked`, and those requested before; compiles missing ones in parallel. Bits that the op lacks are
    /// ignored; KVJIT_BAD_ARGUMENT for one that no op has.
    gen::Result<ImageSet> prepare(std::uint32_t asked);
    /// Takes the images of `asked` that memory and stores have, all at once, so that these decide on the target before
    /// anything is compiled. Returns the remaining bits. Errors: prepare's.
    gen::Result<std::uint32_t> take_stored(std::uint32_t asked);
    /// The image of each program in `asked`, as prepare would take or make it now. The kernel owns what they point to.
    /// Errors: KVJIT_BAD_ARGUMENT where there is none; without compiling, the error of a store that can't answer.
    gen::Result<std::vector<KernelImage>> images(std::uint32_t asked) const;
    /// The stage's text for each of these images. See kvjit_kernel_emit.
    gen::Result<std::string> emit(std::uint32_t asked, kvjit_stage stage) const;

private:
    /// All programs on one target; each target has the same programs, in the same order.
    struct Lowered {
        gen::Target target;
        std::vector<gen::Program> programs;
        /// Index of the target that the compiler compiles for instead; its own if that is known.
        std::size_t made_as;
        /// Index of the next target whose programs use no AMX tiles; its own if they use none, or there is no such.
        std::size_t without_tiles;
        gen::TokenCounts decode_tokens;  // that decode takes among these programs; none where the target is a GPU
    };

    Kernel(std::shared_ptr<Images> images, const gen::KernelSpec& spec, std::vector<Lowered> lowered);

    /// The programs on the requested target.
    const std::vector<gen::Program>& programs() const { return lowered_.front().programs; }
    /// Indices of the programs in `asked` that have no image yet.
    std::vector<std::size_t> missing(std::uint32_t asked) const;
    /// Index of the target that serves in the place of this one, which is another where AMX is refused.
    std::size_t served(std::size_t target) const;
    /// Index of the target that the compiler compiles for in the place of this one.
    std::size_t made_as(std::size_t target) const { return lowered_[served(target)].made_as; }
    /// Whether the kernel's images are of a target with programs that use AMX's tiles, or will be.
    bool serves_by_tiles() const;
    /// Asks for the permission to use AMX, if images of `wanted` that are to be taken or made use it: before any of
    /// them is, so that all come from another target where it is refused.
    void ask_for_tiles(const std::vector<std::size_t>& wanted) const;
    /// Whether one of the images that are to be taken or made uses AMX's tiles.
    bool would_use_tiles(const std::vector<std::size_t>& wanted) const;
    /// Adds the programs to the engine's trace of specs.
    void trace(const std::vector<std::size_t>& wanted) const;
    /// The program on each target that serves: first the target of the kernel's other images, then the best.
    std::vector<Candidate> candidates(std::size_t program) const;
    std::vector<Candidate> candidates(std::size_t program, std::size_t first) const;
    /// The candidate to compile: for the target of the kernel's other images, or the compiler's known_target of it.
    Candidate to_make(std::size_t program) const;
    Candidate to_make(std::size_t program, std::size_t first) const;
    /// Index of the candidate's target.
    std::size_t number_of(const gen::Target& target) const;
    /// A program's image as it is now; without an origin if it is not loaded.
    KernelImage loaded(std::size_t program) const;
    /// The image of a program in memory or a store, and the index of its target; else what would be compiled.
    gen::Result<std::optional<std::size_t>> locate(KernelImage& image, std::size_t program, std::size_t first) const;
    /// Indices of the programs in `asked` that must be made, once memory and stores have been searched.
    gen::Result<std::vector<std::size_t>> unknown(std::uint32_t asked);
    /// Takes the images of `wanted` that memory and stores have, and removes those from `wanted`.
    gen::Result<void> take_known(std::vector<std::size_t>& wanted);
    /// Whether all images should be of this target; if none is settled, it becomes that target.
    bool settles(const gen::Target& target);
    void take(std::size_t program, const gen::Target& target, ImagePtr image);
    gen::Result<void> make_all(const std::vector<std::size_t>& wanted);
    gen::Result<void> make_one(std::size_t program);
    /// Where no store has a program for the target, adds why those of the best target don't serve, and the line of a
    /// specs.txt with which the next bundle has it.
    gen::Error with_line(gen::Error error, const gen::Target& target) const;
    /// An exception is rethrown by the future.
    std::future<gen::Result<void>> make_beside(std::size_t program);

    std::shared_ptr<Images> images_;
    gen::KernelSpec spec_;
    std::vector<Lowered> lowered_;
    RunCounts run_counts_;
    std::mutex finding_;                  // one thread at a time decides on the target
    mutable std::mutex mutex_;            // guards what follows
    std::optional<std::size_t> settled_;  // the target that all images should be of
    ImageSet set_;
    PerProgram<std::size_t> target_of_;  // of each image
};

}  // namespace kvjit::rt

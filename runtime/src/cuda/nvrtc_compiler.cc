#include "cuda/nvrtc_compiler.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "cuda/nvrtc_flags.h"
#include "cuda/nvrtc_library.h"
#include "cuda/nvrtc_program.h"
#include "cuda/nvrtc_search.h"
#include "generator/architecture.h"
#include "generator/identity.h"

namespace kvjit::rt {
namespace {

constexpr int kFirstFamilies = 12090;  // "sm_100f"

constexpr const char* kLineInfo = "--generate-line-info";

std::unexpected<gen::Error> unknown_target(const gen::Target& target, const NvrtcLibrary& library) {
    std::string message = "target is " + target.name() + "; this NVRTC compiles for";
    for (const int number : library.architectures) message += " sm_" + std::to_string(number);
    message += " and their variants (sm_90a): " + gen::unknown_architecture_help(target.architecture, library.version);
    return gen::fail(KVJIT_BAD_TARGET, "target", std::move(message));
}

/// Whether every accepted NVRTC knows the target, by the list alone, so that NVRTC needn't be opened.
bool all_know(const gen::Target& target) {
    const gen::KnownArchitecture* found = gen::find_architecture(target.architecture.number);
    return found != nullptr && found->cuda <= kOldestNvrtc;
}

/// nullopt: NVRTC compiles nothing that `target` runs.
std::optional<gen::Architecture> nearest(const gen::Target& target, const NvrtcLibrary& library) {
    return gen::nearest_architecture(target.architecture, {library.architectures, library.version >= kFirstFamilies});
}

class NvrtcCompiler final : public Compiler {
public:
    explicit NvrtcCompiler(NvrtcOptions options)
        : options_(std::move(options)), flags_(kNvrtcFlags.begin(), kNvrtcFlags.end()) {
        if (options_.line_info) flags_.push_back(kLineInfo);
    }

    gen::Result<std::string> identity() override {
        const std::lock_guard lock(mutex_);
        if (!identity_.empty()) return identity_;
        const gen::Result<std::string> path = locate();
        if (!path) return std::unexpected(path.error());
        const gen::Result<std::string> libraries = describe_nvrtc(*path);
        if (!libraries) return libraries;
        return identity_ = gen::print_maker(*libraries, flags_);
    }

    gen::Result<CompileOutput> compile(std::string_view source, std::string_view name, const gen::Target& target,
                                       CompileStage stage) override {
        if (stage == CompileStage::kIr || stage == CompileStage::kIrUnoptimised) {
            return gen::fail(KVJIT_BAD_ARGUMENT, "stage",
                             "stage is KVJIT_STAGE_IR or KVJIT_STAGE_IR_UNOPTIMISED; CUDA programs have no LLVM IR, "
                             "but source, assembly (PTX) and log");
        }
        const gen::Result<const NvrtcLibrary*> library = open_once();
        if (!library) return std::unexpected(library.error());
        if (nearest(target, **library) != target.architecture) return unknown_target(target, **library);
        const bool ptx = stage == CompileStage::kAsm;
        const std::string architecture =
            "--gpu-architecture=" +
            (ptx ? "compute_" + target.architecture.name().substr(3) : target.architecture.name());
        std::vector<const char*> flags = flags_;
        flags.push_back(architecture.c_str());
        return run_nvrtc((*library)->api, {std::string(source), std::string(name), flags, ptx});
    }

    gen::Target known_target(const gen::Target& target) override {
        if (all_know(target)) return target;
        const gen::Result<const NvrtcLibrary*> library = open_once();
        const auto architecture = library ? nearest(target, **library) : std::nullopt;
        gen::Target known = target;  // if there is none, compile() reports why
        if (architecture) known.architecture = *architecture;
        return known;
    }

    double load_seconds() const override { return load_seconds_; }

private:
    /// Always the same answer, so that identity() and compile() use one library.
    gen::Result<std::string> locate() {
        if (!path_.empty()) return path_;
        gen::Result<std::string> found = find_nvrtc(options_.path, options_.driver_major ? options_.driver_major() : 0);
        if (found) path_ = *found;
        return found;
    }

    gen::Result<const NvrtcLibrary*> open_once() {
        const std::lock_guard lock(mutex_);
        if (library_) return &*library_;
        const gen::Result<std::string> path = locate();
        if (!path) return std::unexpected(path.error());
        const auto start = std::chrono::steady_clock::now();
        const gen::Result<std::string> described = describe_nvrtc(*path);
        gen::Result<NvrtcLibrary> opened = open_nvrtc(*path);
        if (!opened) return std::unexpected(opened.error());
        // What it makes is stored under its name: not under that of a file which was in its place before or after.
        if (described && describe_nvrtc(*path) != *described) {
            return missing_library(kNvrtcText, *path + " was replaced while it was opened");
        }
        if (described) identity_ = gen::print_maker(*described, flags_);
        load_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return &library_.emplace(*std::move(opened));
    }

    const NvrtcOptions options_;
    std::vector<const char*> flags_;
    std::mutex mutex_;  // guards what follows
    std::string path_;
    std::string identity_;
    std::optional<NvrtcLibrary> library_;
    std::atomic<double> load_seconds_ = 0;
};

}  // namespace

std::unique_ptr<Compiler> make_nvrtc_compiler(NvrtcOptions options) {
    return std::make_unique<NvrtcCompiler>(std::move(options));
}

}  // namespace kvjit::rt

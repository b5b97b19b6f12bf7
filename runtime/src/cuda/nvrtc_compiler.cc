#include "cuda/nvrtc_compiler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "cuda/nvrtc_program.h"
#include "cuda/nvrtc_search.h"

namespace kvjit::rt {
namespace {

constexpr int kOldestVersion[] = {12, 4};  // --minimal, __builtin_bit_cast

// Part of the provenance. The architecture is part of the identity.
constexpr const char* kFlags[] = {
    "--std=c++20",
    "--device-as-default-execution-space",  // templates mark no function as __device__
    "--minimal",                            // no builtin types and functions beyond the language: templates need none
    "--fmad=true",                          // as -ffp-contract=on: a*b+c rounds once where an expression writes it
    "-Xptxas=-v",                           // registers, spills and shared memory go into the log
};
constexpr const char* kLineInfo = "--generate-line-info";

/// An open NVRTC.
struct Library {
    nvrtc::Api api;
    std::vector<int> architectures;  // 80, 90, 100, ascending
};

gen::Result<void> check_version(const nvrtc::Api& api, const std::string& path) {
    int major = 0, minor = 0;
    api.version(&major, &minor);
    if (std::pair(major, minor) >= std::pair(kOldestVersion[0], kOldestVersion[1])) return {};
    return missing_library(kNvrtcText, path + " is of CUDA " + std::to_string(major) + "." + std::to_string(minor));
}

std::vector<int> architectures_of(const nvrtc::Api& api) {
    int count = 0;
    if (api.get_num_supported_archs(&count) != nvrtc::kSuccess || count <= 0) return {};
    std::vector<int> found(static_cast<std::size_t>(count));
    if (api.get_supported_archs(found.data()) != nvrtc::kSuccess) found.clear();
    std::ranges::sort(found);
    return found;
}

gen::Result<Library> open_library(const std::string& path) {
    const std::string paths[] = {path};
    const gen::Result<DynamicLibrary> opened = DynamicLibrary::open(kNvrtcText, paths);
    if (!opened) return std::unexpected(opened.error());
    Library library{};
    if (auto filled = opened->fill(library.api, nvrtc::symbols()); !filled) return std::unexpected(filled.error());
    if (auto recent = check_version(library.api, path); !recent) return std::unexpected(recent.error());
    library.architectures = architectures_of(library.api);
    return library;
}

std::unexpected<gen::Error> unknown_target(const gen::Target& target, const Library& library) {
    std::string message = "target is " + target.cpu + "; this NVRTC compiles for";
    for (const int number : library.architectures) message += " sm_" + std::to_string(number);
    message += " and their variants (sm_90a): a newer GPU needs a newer NVRTC";
    return gen::fail(KVJIT_BAD_TARGET, "target", std::move(message));
}

/// "sm_90a" is known where 90 is.
bool knows(const Library& library, std::string_view cpu) {
    if (!cpu.starts_with("sm_")) return false;
    std::string_view number = cpu.substr(3);
    if (number.ends_with('a') || number.ends_with('f')) number.remove_suffix(1);
    return std::ranges::any_of(library.architectures, [&](int known) { return std::to_string(known) == number; });
}

class NvrtcCompiler final : public Compiler {
public:
    explicit NvrtcCompiler(NvrtcOptions options)
        : options_(std::move(options)), flags_(std::begin(kFlags), std::end(kFlags)) {
        if (options_.line_info) flags_.push_back(kLineInfo);
    }

    gen::Result<std::string> identity() override {
        const std::lock_guard lock(mutex_);
        if (!identity_.empty()) return identity_;
        const gen::Result<std::string> path = locate();
        if (!path) return std::unexpected(path.error());
        gen::Result<std::string> text = describe_nvrtc(*path);
        if (!text) return text;
        *text += "flags";
        for (const char* flag : flags_) *text += std::string(" ") + flag;
        return identity_ = *std::move(text);
    }

    gen::Result<CompileOutput> compile(std::string_view source, std::string_view name, const gen::Target& target,
                                       CompileStage stage) override {
        if (stage == CompileStage::kIr) {
            return gen::fail(
                KVJIT_BAD_ARGUMENT, "stage",
                "stage is KVJIT_STAGE_IR; CUDA programs have no LLVM IR, but source, assembly (PTX) and log");
        }
        const gen::Result<const Library*> library = open_once();
        if (!library) return std::unexpected(library.error());
        if (!knows(**library, target.cpu)) return unknown_target(target, **library);
        const bool ptx = stage == CompileStage::kAsm;
        const std::string architecture = "--gpu-architecture=" + (ptx ? "compute_" + target.cpu.substr(3) : target.cpu);
        std::vector<const char*> flags = flags_;
        flags.push_back(architecture.c_str());
        return run_nvrtc((*library)->api, {std::string(source), std::string(name), flags, ptx});
    }

    double load_seconds() const override { return load_seconds_; }

private:
    /// Always the same answer, so that identity() and compile() speak of one library.
    gen::Result<std::string> locate() {
        if (!path_.empty()) return path_;
        gen::Result<std::string> found = find_nvrtc(options_.path, options_.driver_major ? options_.driver_major() : 0);
        if (found) path_ = *found;
        return found;
    }

    gen::Result<const Library*> open_once() {
        const std::lock_guard lock(mutex_);
        if (library_) return &*library_;
        const gen::Result<std::string> path = locate();
        if (!path) return std::unexpected(path.error());
        const auto start = std::chrono::steady_clock::now();
        gen::Result<Library> opened = open_library(*path);
        if (!opened) return std::unexpected(opened.error());
        load_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return &library_.emplace(*std::move(opened));
    }

    const NvrtcOptions options_;
    std::vector<const char*> flags_;
    std::mutex mutex_;  // guards what follows
    std::string path_;
    std::string identity_;
    std::optional<Library> library_;
    std::atomic<double> load_seconds_ = 0;
};

}  // namespace

std::unique_ptr<Compiler> make_nvrtc_compiler(NvrtcOptions options) {
    return std::make_unique<NvrtcCompiler>(std::move(options));
}

}  // namespace kvjit::rt

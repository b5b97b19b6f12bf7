#include "cpu/clang_compiler.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <vector>

#include "cpu/clang/flags.h"
#include "cpu/clang/plugin.h"
#include "cpu/loaded_objects.h"
#include "environment.h"
#include "generator/identity.h"
#include "library_file.h"
#include "library_search.h"

namespace kvjit::rt {
namespace {

/// The begin of a missing compiler's error, and the advice.
#ifdef KVJIT_CPU_COMPILER
constexpr const char* kMissing = "kvjit's compiler can't be opened: ";
constexpr const char* kRemedy = "; install libkvjit_compiler.so there, or set KVJIT_COMPILER to its path";
#else
constexpr const char* kMissing = "this build of kvjit has no compiler (KVJIT_CPU_COMPILER=OFF): ";
constexpr const char* kRemedy =
    "; add a bundle that has the kernel (kvjit_engine_add_bundle; kvjit bundle create makes one, where kvjit has a "
    "compiler), or set KVJIT_COMPILER to the libkvjit_compiler.so of such a kvjit";
#endif

constexpr const char* kFileName = "/libkvjit_compiler.so";
/// Address space that Clang takes for two compiles at once, and a little more.
constexpr std::size_t kCompilerSpace = std::size_t{528} << 20;

bool has_room() {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* space = mmap(nullptr, kCompilerSpace, PROT_NONE, kFlags, -1, 0);
    return space != MAP_FAILED && munmap(space, kCompilerSpace) == 0;
}

std::vector<std::string> candidates(std::string path) {
    if (!path.empty()) return {std::move(path)};
    if (const auto chosen = environment_text(Variable::kCompiler); chosen && !chosen->empty()) return {*chosen};
    const std::string folder = own_folder();
    return {folder + kFileName, folder + "/../lib" + kFileName};
}

// Names every feature, present or absent, on top of the oldest machine.
std::vector<std::string> target_arguments(const gen::Target& target) {
    std::vector<std::string> arguments = {"-triple",     std::string(gen::kCpuTriple),
                                          "-target-cpu", "x86-64",
                                          "-tune-cpu",   std::string(gen::tuning_cpu(target.features))};
    for (const gen::X86Feature& feature : gen::x86_features()) {
        arguments.emplace_back("-target-feature");
        arguments.push_back((target.has(feature.name) ? "+" : "-") + std::string(feature.name));
    }
    return arguments;
}

std::vector<const char*> stage_arguments(CompileStage stage) {
    switch (stage) {
        case CompileStage::kIr:
        case CompileStage::kIrUnoptimised:
            return {"-emit-llvm"};  // values keep their names, for the IR's reader
        case CompileStage::kAsm:
            return {"-S", "-discard-value-names", "-fstack-size-section"};  // how large frames are
        case CompileStage::kObject:
            break;
    }
    return {"-emit-obj", "-discard-value-names"};
}

void append_output(void* context, const char* bytes, size_t size) {
    static_cast<CompileOutput*>(context)->object.append(bytes, size);
}

void append_text(void* context, const char* bytes, size_t size) {
    static_cast<std::string*>(context)->append(bytes, size);
}

void append_log(void* context, const char* bytes, size_t size) {
    static_cast<CompileOutput*>(context)->log.append(bytes, size);
}

class ClangCompiler final : public CpuCompiler {
public:
    ClangCompiler(std::vector<std::string> paths, CompilerSettings settings)
        : paths_(std::move(paths)), settings_(std::move(settings)), flags_(kClangFlags.begin(), kClangFlags.end()) {
        for (const std::string& flag : settings_.flags) flags_.push_back(flag.c_str());
    }

    std::string_view mark() const override { return settings_.mark; }

    std::span<const std::string> paths() const override { return paths_; }

    gen::Result<std::string> identity() override {
        std::lock_guard lock(mutex_);
        if (!identity_.empty()) return identity_;
        const gen::Result<std::string> path = locate();
        if (!path) return std::unexpected(path.error());
        std::string maker = maker_of(*path);
        if (maker.empty()) {
            if (const auto opened = open(); !opened) return std::unexpected(opened.error());
            return missing(*path + " is no compiler of kvjit's");
        }
        return identity_ = std::move(maker);
    }

    gen::Result<CompileOutput> compile(std::string_view source, std::string_view name, const gen::Target& target,
                                       CompileStage stage) override {
        if (target.backend == gen::Backend::kCuda) {
            return gen::fail(KVJIT_BAD_TARGET, "target", "the CPU compiler makes x86-64 code, not " + target.name());
        }
        const auto clang = open_once();
        if (!clang) return std::unexpected(clang.error());
        const std::vector<std::string> of_target = target_arguments(target);
        std::vector<const char*> arguments = flags_;
        for (const std::string& argument : of_target) arguments.push_back(argument.c_str());
        std::ranges::copy(stage_arguments(stage), std::back_inserter(arguments));
        const std::string file(name);
        const std::string_view passes = stage == CompileStage::kIrUnoptimised ? "no-op-module" : settings_.passes;
        CompileOutput output;
        const kvjit_clang_request request{source.data(),    source.size(), file.c_str(),  arguments.data(),
                                          arguments.size(), passes.data(), passes.size(), append_output,
                                          append_log,       &output};
        if ((*clang)->compile(&request) == 0) return output;
        return gen::fail(KVJIT_COMPILE_FAILED, "source", file + " doesn't compile:\n" + output.log);
    }

    std::string code_line(std::uint64_t address) override {
        const std::string object = find_loaded_object(address);
        std::string line;
        const auto clang = open_once();
        if (clang) (*clang)->find_line(object.data(), object.size(), address, append_text, &line);
        return line.empty() ? "an unknown line" : line;
    }

    double load_seconds() const override { return load_seconds_; }

private:
    using Clang = const kvjit_clang_functions*;

    /// The identity of the compiler in this file; empty where it is no library.
    std::string maker_of(const std::string& path) const {
        const std::optional<LibraryFile> file = LibraryFile::open(path);
        return file ? gen::print_maker(file->describe("libkvjit_compiler"), flags_, settings_.passes) : "";
    }

    gen::Result<std::string> locate() const {
        if (const char* why = why_no_libraries()) {
            return gen::fail(KVJIT_COMPILER_MISSING, "compiler", std::string("there is no compiler here: ") + why);
        }
        std::string failures;
        for (const std::string& path : paths_) {
            auto real = real_path(path);
            if (real) return *std::move(real);
            if (!is_absent(real.error()))
                failures += (failures.empty() ? "" : "; ") + path + ": " + real.error().message();
        }
        return missing(failures.empty() ? "found nowhere" : failures);
    }

    std::unexpected<gen::Error> missing(const std::string& what) const {
        std::string message = kMissing + what + "; tried";
        for (const std::string& path : paths_) message += " " + path;
        message += kRemedy;
        return gen::fail(KVJIT_COMPILER_MISSING, "compiler", std::move(message));
    }

    std::unexpected<gen::Error> no_room(const std::string& path) const {
        constexpr auto kBytes = static_cast<std::int64_t>(kCompilerSpace);
        return gen::fail(KVJIT_OUT_OF_MEMORY, "memory",
                         "no memory for kvjit's compiler, " + path + ": Clang and LLVM take " + std::to_string(kBytes) +
                             " bytes of address space (ulimit -v), more than this process has left",
                         kBytes);
    }

    gen::Result<Clang> open_once() {
        std::lock_guard lock(mutex_);
        return open();
    }

    // The library stays open: LLVM can't be unloaded.
    gen::Result<Clang> open() {
        if (clang_) return clang_;
        const gen::Result<std::string> path = locate();
        if (!path) return std::unexpected(path.error());
        // Opened with less than a compile takes, Clang would end the process.
        if (!has_room()) return no_room(*path);
        const auto start = std::chrono::steady_clock::now();
        std::string maker = maker_of(*path);
        void* library = dlopen(path->c_str(), RTLD_LOCAL | RTLD_NOW);
        if (!library) {
            const std::string why = dlerror();
            return has_room() ? missing(why) : no_room(*path);
        }
        void* symbol = dlsym(library, KVJIT_CLANG_FUNCTIONS);
        if (!symbol) return missing(*path + " belongs to another version of kvjit");
        // What it makes is stored under its name: not under that of a file which was in its place before or after.
        if (maker_of(*path) != maker) return missing(*path + " was replaced while it was opened");
        identity_ = std::move(maker);
        load_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return clang_ = static_cast<Clang>(symbol);
    }

    const std::vector<std::string> paths_;
    const CompilerSettings settings_;
    std::vector<const char*> flags_;  // some are the settings'
    std::mutex mutex_;                // guards what follows
    std::string identity_;            // of the compiler that is open, else of the file that was found
    Clang clang_ = nullptr;
    std::atomic<double> load_seconds_ = 0;
};

}  // namespace

std::unique_ptr<CpuCompiler> make_compiler(std::string path, CompilerSettings settings) {
    return std::make_unique<ClangCompiler>(candidates(std::move(path)), std::move(settings));
}

}  // namespace kvjit::rt

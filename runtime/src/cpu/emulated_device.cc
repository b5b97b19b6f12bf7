#include "cpu/emulated_device.h"

#include <cstring>
#include <new>
#include <vector>

#include "cuda/dynamic_library.h"
#include "emulation/plugin.h"

namespace kvjit::rt {
namespace {

constexpr LibraryText kText = {KVJIT_CUDA_ERROR, "target", "the emulation of CUDA (libkvjit_emulation.so)",
                               "install it beside libkvjit_compiler.so (a build with KVJIT_CPU_COMPILER=OFF has "
                               "neither), or set KVJIT_COMPILER to "
                               "the path of one that has it beside it"};

constexpr std::size_t kAlignment = 256;
constexpr int kPoison = 0xff;  // NaN as float32 and as float16
/// Few, so that small batches already split their keys.
constexpr int kMultiprocessors = 8;

std::unexpected<gen::Error> out_of_memory() {
    return gen::fail(KVJIT_OUT_OF_MEMORY, "memory", "no memory for emulating CUDA");
}

/// Of the emulator's, where nothing may be thrown.
void write_line(void* compiler, std::uint64_t address, char* text, std::size_t size) noexcept {
    try {
        const std::string line = static_cast<CpuCompiler*>(compiler)->code_line(address);
        text[line.copy(text, size - 1)] = '\0';
    } catch (const std::bad_alloc&) {
        text[0] = '\0';
    }
}

using Emulator = std::unique_ptr<kvjit_emulator, void (*)(kvjit_emulator*)>;

class EmulatedDevice final : public Device {
public:
    EmulatedDevice(const kvjit_emulation_functions& library, Emulator emulator)
        : library_(library), emulator_(std::move(emulator)) {}

    gen::Result<void> launch(void* kernel, const Grid& grid, const void* args, std::size_t args_bytes, void*) override {
        const kvjit_emulation_launch launch{kernel, grid.x, grid.y, grid.threads, grid.shared_bytes, args, args_bytes};
        kvjit_error error;
        const kvjit_status status = library_.launch(emulator_.get(), &launch, &error);
        if (status == KVJIT_OK) return {};
        return gen::fail(status, error.argument, error.message, error.value, error.limit);
    }

    gen::Result<void*> allocate(std::size_t bytes) override {
        void* memory = ::operator new(bytes, std::align_val_t{kAlignment}, std::nothrow);
        if (!memory) return out_of_memory();
        return std::memset(memory, kPoison, bytes);
    }

    void release(void* memory) noexcept override { ::operator delete(memory, std::align_val_t{kAlignment}); }

    gen::Result<void> upload(void* to, const void* from, std::size_t bytes, StreamOrder) override {
        std::memcpy(to, from, bytes);
        return {};
    }

    gen::Result<void> zero(void* to, std::size_t bytes, StreamOrder) override {
        std::memset(to, 0, bytes);
        return {};
    }

    gen::Result<void> synchronize(void*) override { return {}; }

    gen::Result<void> download(void* to, const void* from, std::size_t bytes, void*) override {
        std::memcpy(to, from, bytes);
        return {};
    }

    int multiprocessors() const override { return kMultiprocessors; }

private:
    const kvjit_emulation_functions& library_;
    const Emulator emulator_;
};

std::vector<std::string> beside(std::span<const std::string> compilers) {
    std::vector<std::string> paths;
    for (const std::string& path : compilers) {
        paths.push_back(path.substr(0, path.rfind('/') + 1) + "libkvjit_emulation.so");
    }
    return paths;
}

gen::Result<const kvjit_emulation_functions*> open_library(std::span<const std::string> paths) {
    const gen::Result<DynamicLibrary> library = DynamicLibrary::open(kText, paths);
    if (!library) return std::unexpected(library.error());
    void* functions = library->find(KVJIT_EMULATION_FUNCTIONS);
    if (!functions) return missing_library(kText, library->path() + " belongs to another version of kvjit");
    return static_cast<const kvjit_emulation_functions*>(functions);
}

}  // namespace

gen::Result<std::unique_ptr<Device>> make_emulated_device(CpuCompiler& compiler, std::uint64_t seed) {
    const auto library = open_library(beside(compiler.paths()));
    if (!library) return std::unexpected(library.error());
    Emulator emulator((*library)->create(seed, write_line, &compiler), (*library)->destroy);
    if (!emulator) return out_of_memory();
    return std::make_unique<EmulatedDevice>(**library, std::move(emulator));
}

}  // namespace kvjit::rt

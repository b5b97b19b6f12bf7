#include "cuda/cubin_loader.h"

#include "cuda/gpu_context.h"
#include "elf_view.h"

namespace kvjit::rt {
namespace {

constexpr unsigned kCudaMachine = 190;  // EM_CUDA

/// A library loaded by the driver, unloaded at the end. A driver that has been shut down before has unloaded it
/// already, and returns a harmless error.
class LoadedLibrary {
public:
    LoadedLibrary(const cuda::DriverApi& api, cuda::Library library) : api_(api), library_(library) {}
    LoadedLibrary(const LoadedLibrary&) = delete;
    LoadedLibrary& operator=(const LoadedLibrary&) = delete;
    ~LoadedLibrary() {
        const RelaxedCapture relaxed(api_);
        api_.library_unload(library_);
    }
    cuda::Library handle() const { return library_; }

private:
    const cuda::DriverApi& api_;
    cuda::Library library_;
};

class CubinImage final : public Image {
public:
    CubinImage(std::unique_ptr<LoadedLibrary> library, cuda::Kernel kernel, const LaunchShape& launch)
        : Image(launch), library_(std::move(library)), kernel_(kernel) {}
    void* entry() const override { return kernel_; }

private:
    std::unique_ptr<LoadedLibrary> library_;
    cuda::Kernel kernel_;
};

std::unexpected<gen::Error> unusable(const std::string& name, const std::string& why) {
    return gen::fail(KVJIT_BAD_FILE, "object", "the cubin of " + name + " can't be loaded: " + why);
}

/// The driver isn't given a length: it trusts the cubin's own.
bool is_whole_cubin(std::string_view bytes) {
    const std::optional<ElfView> elf = ElfView::open(bytes);
    return elf && elf->machine() == kCudaMachine && elf->is_whole();
}

}  // namespace

gen::Result<ImagePtr> load_cubin(const Driver& driver, std::string_view cubin, std::string_view entry,
                                 const std::string& name, const LaunchShape& launch) {
    if (!is_whole_cubin(cubin)) return unusable(name, "it is no cubin, or only a part of one");
    const cuda::DriverApi& api = driver.api();
    const RelaxedCapture relaxed(api);
    const std::string aligned(cubin);
    cuda::Library handle = nullptr;
    cuda::Code code = api.library_load_data(&handle, aligned.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (auto loaded = driver.check(code, "loading the cubin of " + name); !loaded) {
        return std::unexpected(loaded.error());
    }
    auto library = std::make_unique<LoadedLibrary>(api, handle);
    cuda::Kernel kernel = nullptr;
    const std::string wanted(entry);
    code = api.library_get_kernel(&kernel, library->handle(), wanted.c_str());
    if (code == cuda::kNotFound) return unusable(name, "it has no kernel named " + wanted);
    if (auto found = driver.check(code, "finding the kernel " + wanted); !found) return std::unexpected(found.error());
    return std::make_shared<CubinImage>(std::move(library), kernel, launch);
}

}  // namespace kvjit::rt

#include "cuda/nvrtc_library.h"

#include <algorithm>

#include "cuda/driver.h"
#include "cuda/nvrtc_search.h"

namespace kvjit::rt {
namespace {

constexpr int kFirstToOpenDriver = 13000;

int version_of(const nvrtc::Api& api) {
    int major = 0, minor = 0;
    api.version(&major, &minor);
    return major * 1000 + minor * 10;
}

std::vector<int> architectures_of(const nvrtc::Api& api) {
    int count = 0;
    if (api.get_num_supported_archs(&count) != nvrtc::kSuccess || count <= 0) return {};
    std::vector<int> found(static_cast<std::size_t>(count));
    if (api.get_supported_archs(found.data()) != nvrtc::kSuccess) found.clear();
    std::ranges::sort(found);
    return found;
}

}  // namespace

gen::Result<NvrtcLibrary> open_nvrtc(const std::string& path) {
    const std::string paths[] = {path};
    const gen::Result<DynamicLibrary> opened = DynamicLibrary::open(kNvrtcText, paths);
    if (!opened) return std::unexpected(opened.error());
    NvrtcLibrary library{};
    if (auto filled = opened->fill(library.api, nvrtc::symbols()); !filled) return std::unexpected(filled.error());
    library.version = version_of(library.api);
    if (library.version < kOldestNvrtc) {
        return missing_library(kNvrtcText, path + " is of CUDA " + cuda_version_text(library.version));
    }
    if (library.version >= kFirstToOpenDriver) {
        if (auto usable = check_driver_for_nvrtc(); !usable) return std::unexpected(usable.error());
    }
    library.architectures = architectures_of(library.api);
    return library;
}

}  // namespace kvjit::rt

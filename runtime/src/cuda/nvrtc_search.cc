#include "cuda/nvrtc_search.h"

#include <algorithm>
#include <filesystem>
#include <ranges>

#include "environment.h"
#include "library_file.h"
#include "library_search.h"

namespace kvjit::rt {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
constexpr const char* kPackages[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};

std::string variable(const char* name) {
    return environment_text(name).value_or("");
}

/// Names in a folder that begin with `prefix`, without the folder's path; fewer where it can't be read.
std::vector<std::string> entries(const std::string& folder, std::string_view prefix, std::error_code& error) {
    std::vector<std::string> found;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        if (std::string name = it->path().filename(); name.starts_with(prefix)) found.push_back(std::move(name));
    }
    return found;
}

/// python3.12, python3.9, python3: by version, newest first.
std::vector<std::string> python_folders(const std::string& lib) {
    std::error_code ignored;
    std::vector<std::string> found = entries(lib, "python3", ignored);
    std::ranges::sort(found, [](const std::string& a, const std::string& b) {
        return a.size() != b.size() ? a.size() > b.size() : a > b;
    });
    return found;
}

void add_folder(std::vector<std::string>& folders, const std::string& folder) {
    std::error_code error;
    if (fs::is_directory(folder, error)) folders.push_back(folder);
}

void add_packages(std::vector<std::string>& folders, const std::string& prefix) {
    for (const std::string& python : python_folders(prefix + "/lib")) {
        for (const char* site : {"/site-packages/", "/dist-packages/"}) {
            for (const char* package : kPackages) {
                add_folder(folders, std::string(prefix).append("/lib/").append(python).append(site).append(package));
            }
        }
    }
}

/// The library that the linker would load for one of the names; opens it. Empty: none.
std::string open_by_name(const std::vector<std::string>& names) {
    const gen::Result<DynamicLibrary> opened = DynamicLibrary::open(kNvrtcText, names);
    return opened ? opened->path() : std::string();
}

/// Empty: not found. Adds to `failures` the searches that failed.
std::string find_file(const std::string& name, const std::vector<std::string>& folders, std::string& failures) {
    if (std::string path = find_library(name); !path.empty()) return path;
    for (const std::string& folder : folders) {
        const std::string candidate = folder + "/" + name;
        auto path = real_path(candidate);
        if (path) return *std::move(path);
        if (!is_absent(path.error())) failures += "; " + candidate + ": " + path.error().message();
    }
    return {};
}

std::unexpected<gen::Error> found_nowhere(const std::vector<std::string>& names,
                                          const std::vector<std::string>& folders, const std::string& failures) {
    std::string what = "found no";
    for (const std::string& name : names) what += " " + name;
    what += " where the linker looks";
    for (const std::string& folder : folders) what += ", in " + folder;
    return missing_library(kNvrtcText, what + failures);
}

}  // namespace

const LibraryText kNvrtcText = {
    KVJIT_COMPILER_MISSING, "KVJIT_NVRTC", "NVRTC, which compiles CUDA kernels,",
    "install it from CUDA 12.4 or newer (with NVIDIA's repository: apt install cuda-nvrtc-13-0; or pip install "
    "nvidia-cuda-nvrtc, for CUDA 12 nvidia-cuda-nvrtc-cu12), or set KVJIT_NVRTC to the path of libnvrtc.so.13 or "
    "libnvrtc.so.12"};

std::vector<std::string> nvrtc_folders() {
    std::vector<std::string> folders;
    for (const std::string& root : {variable("CUDA_HOME"), variable("CUDA_PATH"), std::string("/usr/local/cuda")}) {
        if (root.empty()) continue;
        add_folder(folders, root + "/lib64");
        add_folder(folders, root + "/lib");
    }
    const std::string home = variable("HOME");
    for (const std::string& prefix :
         {variable("VIRTUAL_ENV"), variable("CONDA_PREFIX"), home.empty() ? home : home + "/.local",
          std::string("/usr/local"), std::string("/usr")}) {
        if (!prefix.empty()) add_packages(folders, prefix);
    }
    if (const std::string conda = variable("CONDA_PREFIX"); !conda.empty()) add_folder(folders, conda + "/lib");
    return folders;
}

std::vector<std::string> nvrtc_names(int driver_major) {
    std::vector<std::string> names(std::begin(kNames), std::end(kNames));
    if (driver_major == 12) std::ranges::reverse(names);
    return names;
}

gen::Result<std::string> find_nvrtc(const std::string& chosen, int driver_major) {
    if (auto able = check_process(kNvrtcText); !able) return std::unexpected(able.error());
    const std::string named = chosen.empty() ? environment_text(Variable::kNvrtc).value_or("") : chosen;
    if (!named.empty()) {
        auto path = real_path(named);
        if (path) return *std::move(path);
        const bool absent = is_absent(path.error());
        return missing_library(kNvrtcText, absent ? "there is no " + named : named + ": " + path.error().message());
    }
    const std::vector<std::string> names = nvrtc_names(driver_major);
    const std::vector<std::string> folders = nvrtc_folders();
    std::string failures;
    for (const std::string& name : names) {
        if (std::string path = find_file(name, folders, failures); !path.empty()) return path;
    }
    if (std::string path = open_by_name(names); !path.empty()) return path;
    return found_nowhere(names, folders, failures);
}

gen::Result<std::string> describe_nvrtc(const std::string& path) {
    const std::optional<LibraryFile> library = LibraryFile::open(path);
    if (!library) return missing_library(kNvrtcText, path + " is no library");
    const std::string folder = parent_folder(path);
    std::error_code error;
    std::vector<std::string> builtins;
    for (const std::string& name : entries(folder, "libnvrtc-builtins.so", error)) {
        const std::string file = real_path(folder + "/" + name).value_or(folder + "/" + name);
        if (const auto found = LibraryFile::open(file)) builtins.push_back(found->describe("libnvrtc-builtins"));
    }
    if (error) return missing_library(kNvrtcText, folder + " can't be read: " + error.message());
    std::ranges::sort(builtins);
    builtins.erase(std::ranges::unique(builtins).begin(), builtins.end());
    std::string text = library->describe("libnvrtc");
    for (const std::string& line : builtins) text += line;
    return text;
}

}  // namespace kvjit::rt

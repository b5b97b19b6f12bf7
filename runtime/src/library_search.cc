#include "library_search.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <vector>

namespace kvjit::rt {
namespace {

/// Whether the program has a dynamic linker. The first object that glibc lists is the program.
bool has_interpreter() {
    bool found = false;
    const auto look = [](dl_phdr_info* program, std::size_t, void* answer) {
        for (const ElfW(Phdr) & header : std::span(program->dlpi_phdr, program->dlpi_phnum)) {
            if (header.p_type == PT_INTERP) *static_cast<bool*>(answer) = true;
        }
        return 1;
    };
    dl_iterate_phdr(look, &found);
    return found;
}

link_map* own_link_map() {
    static const int anchor = 0;
    Dl_info info;
    void* map = nullptr;
    return dladdr1(&anchor, &info, &map, RTLD_DL_LINKMAP) ? static_cast<link_map*>(map) : nullptr;
}

std::vector<std::string> search_folders() {
    std::vector<std::string> folders, defaults;
    link_map* self = own_link_map();
    if (!self) return {};
    Dl_serinfo size;
    if (dlinfo(self, RTLD_DI_SERINFOSIZE, &size) != 0) throw std::bad_alloc();  // the only possible error
    std::vector<std::max_align_t> storage(size.dls_size / sizeof(std::max_align_t) + 1);
    auto* info = reinterpret_cast<Dl_serinfo*>(storage.data());
    if (dlinfo(self, RTLD_DI_SERINFOSIZE, info) != 0 || dlinfo(self, RTLD_DI_SERINFO, info) != 0) {
        throw std::bad_alloc();
    }
    for (unsigned i = 0; i < info->dls_cnt; ++i) {
        const Dl_serpath& folder = info->dls_serpath[i];
        if (folder.dls_flags & LA_SER_LIBPATH) folders.emplace_back(folder.dls_name);
        if (folder.dls_flags & LA_SER_DEFAULT) defaults.emplace_back(folder.dls_name);
    }
    folders.insert(folders.end(), defaults.begin(), defaults.end());
    return folders;
}

std::string loaded_path(const std::string& name) {
    void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return {};
    link_map* map = nullptr;
    const std::string path = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
    dlclose(handle);
    return path;
}

}  // namespace

std::expected<std::string, std::error_code> real_path(const std::string& path) {
    const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), free);
    if (real) return real.get();
    if (errno == ENOMEM) throw std::bad_alloc();
    return std::unexpected(std::error_code(errno, std::generic_category()));
}

bool is_absent(const std::error_code& error) {
    return error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
}

std::string parent_folder(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::string own_folder() {
    const link_map* self = own_link_map();
    if (!self) return {};
    const bool is_program = self->l_name[0] == '\0';  // the program has no name there, only argv[0]
    const std::string file = is_program ? "/proc/self/exe" : self->l_name;
    return parent_folder(real_path(file).value_or(file));
}

const char* why_no_libraries() {
    static const bool is_static = !has_interpreter();
    return is_static ? "this program was linked with -static and opens no libraries: it runs CPU kernels out of bundles"
                     : nullptr;
}

std::string find_library(const std::string& name) {
    if (why_no_libraries() != nullptr) return {};
    // Another library of the same name would not be loaded.
    if (const std::string path = loaded_path(name); !path.empty()) return real_path(path).value_or(path);
    for (const std::string& folder : search_folders()) {
        if (auto path = real_path(folder + "/" + name)) return *std::move(path);
    }
    return {};
}

}  // namespace kvjit::rt

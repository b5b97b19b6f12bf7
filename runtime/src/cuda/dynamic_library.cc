#include "cuda/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

#include "library_search.h"

namespace kvjit::rt {

std::unexpected<gen::Error> missing_library(const LibraryText& text, const std::string& what) {
    return gen::fail(text.status, text.argument,
                     std::string(text.title) + " can't be opened: " + what + "; " + text.advice);
}

gen::Result<void> check_process(const LibraryText& text) {
    const char* why = why_no_libraries();
    if (why == nullptr) return {};
    return gen::fail(text.status, text.argument, std::string(text.title) + " can't be opened: " + why);
}

gen::Result<DynamicLibrary> DynamicLibrary::open(const LibraryText& text, std::span<const std::string> candidates) {
    if (auto able = check_process(text); !able) return std::unexpected(able.error());
    std::string reasons;
    for (const std::string& candidate : candidates) {
        if (void* handle = dlopen(candidate.c_str(), RTLD_LOCAL | RTLD_NOW)) return DynamicLibrary(text, handle);
        reasons += (reasons.empty() ? "" : "; ") + std::string(dlerror());
    }
    return missing_library(text, reasons);
}

void* DynamicLibrary::find(const char* symbol) const {
    return dlsym(handle_, symbol);
}

std::string DynamicLibrary::path() const {
    link_map* map = nullptr;
    return dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 ? real_path(map->l_name).value_or(map->l_name) : std::string();
}

std::unexpected<gen::Error> DynamicLibrary::lacks(const char* symbol) const {
    return missing_library(*text_, path() + " has no function " + symbol);
}

}  // namespace kvjit::rt

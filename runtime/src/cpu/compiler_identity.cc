#include "cpu/compiler_identity.h"

#include <ranges>
#include <string_view>
#include <vector>

#include "library_file.h"
#include "library_search.h"

namespace kvjit::rt {
namespace {

std::vector<std::string> split_runpath(const std::string& runpath, const std::string& origin) {
    std::vector<std::string> folders;
    for (const auto part : std::views::split(runpath, ':')) {
        std::string folder(part.begin(), part.end());
        for (const std::string_view token : {"$ORIGIN", "${ORIGIN}"}) {
            const std::size_t at = folder.find(token);
            if (at != std::string::npos) folder.replace(at, token.size(), origin);
        }
        folders.push_back(std::move(folder));
    }
    return folders;
}

std::vector<std::string> runpath_of(const ElfView& elf, const std::string& origin) {
    const std::vector<std::string> runpaths = elf.dynamic_texts(DT_RUNPATH);
    return runpaths.empty() ? std::vector<std::string>() : split_runpath(runpaths.front(), origin);
}

bool is_compiler(const std::string& name) {
    return name.starts_with("libclang-cpp") || name.starts_with("libLLVM");
}

}  // namespace

std::optional<std::string> describe_compiler(const std::string& path) {
    const std::optional<LibraryFile> plugin = LibraryFile::open(path);
    if (!plugin) return std::nullopt;
    std::string text = plugin->describe("libkvjit_compiler");
    const std::vector<std::string> runpath = runpath_of(plugin->elf(), parent_folder(path));
    for (const std::string& name : plugin->elf().dynamic_texts(DT_NEEDED) | std::views::filter(is_compiler)) {
        const std::optional<LibraryFile> needed = LibraryFile::open(find_library(name, runpath));
        if (!needed) return std::nullopt;
        text += needed->describe(name);
    }
    return text;
}

}  // namespace kvjit::rt

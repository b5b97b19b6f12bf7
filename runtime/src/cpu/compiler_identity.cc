#include "cpu/compiler_identity.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Object/ELF.h>
#include <llvm/Support/MemoryBuffer.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <ranges>
#include <string_view>
#include <vector>

#include "library_search.h"

namespace kvjit::rt {
namespace {

using Elf = llvm::object::ELF64LE;

// A file, mapped to be read. Only what lies in its program headers is touched: its ends may be 100 MB apart.
struct Library {
    std::unique_ptr<llvm::MemoryBuffer> bytes;
    llvm::object::ELFFile<Elf> elf;
};

std::optional<Library> open_library(const std::string& path) {
    auto bytes = llvm::MemoryBuffer::getFile(path, false, false);
    if (!bytes || !(*bytes)->getBuffer().starts_with(llvm::StringRef(llvm::ELF::ElfMagic, 4))) return std::nullopt;
    auto elf = llvm::object::ELFFile<Elf>::create((*bytes)->getBuffer());
    if (elf) return Library{std::move(*bytes), *elf};
    llvm::consumeError(elf.takeError());
    return std::nullopt;
}

std::string build_id(const llvm::object::ELFFile<Elf>& elf) {
    auto headers = elf.program_headers();
    if (!headers) {
        llvm::consumeError(headers.takeError());
        return {};
    }
    std::string id;
    for (const Elf::Phdr& header : *headers) {
        if (header.p_type != llvm::ELF::PT_NOTE) continue;
        llvm::Error error = llvm::Error::success();
        for (const Elf::Note& note : elf.notes(header, error)) {
            const bool is_id = note.getType() == llvm::ELF::NT_GNU_BUILD_ID && note.getName() == "GNU";
            if (is_id) id = llvm::toHex(note.getDesc(header.p_align), true);
        }
        llvm::consumeError(std::move(error));
    }
    return id;
}

std::string describe_time(const timespec& time) {
    const std::string nanoseconds = std::to_string(time.tv_nsec);
    return std::to_string(time.tv_sec) + "." + std::string(9 - nanoseconds.size(), '0') + nanoseconds;
}

std::string describe_file(const std::string& name, const std::string& path, const Library& library) {
    struct stat file{};
    stat(path.c_str(), &file);
    return name + " " + path + " size=" + std::to_string(file.st_size) + " mtime=" + describe_time(file.st_mtim) +
           " build=" + build_id(library.elf) + "\n";
}

struct Dependencies {
    std::vector<std::string> names;    // DT_NEEDED
    std::vector<std::string> folders;  // DT_RUNPATH
};

// The dynamic string table, to the end of the file: its strings end with NUL.
std::string_view dynamic_strings(const llvm::object::ELFFile<Elf>& elf, const Elf::DynRange& entries) {
    const auto table = std::ranges::find(entries, llvm::ELF::DT_STRTAB, &Elf::Dyn::getTag);
    if (table == entries.end()) return {};
    auto start = elf.toMappedAddr(table->getPtr());
    if (start) return {reinterpret_cast<const char*>(*start), static_cast<std::size_t>(elf.end() - *start)};
    llvm::consumeError(start.takeError());
    return {};
}

std::string string_at(std::string_view strings, std::uint64_t offset) {
    if (offset >= strings.size()) return {};
    const std::string_view tail = strings.substr(offset);
    return std::string(tail.substr(0, tail.find('\0')));
}

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

Dependencies read_dependencies(const llvm::object::ELFFile<Elf>& elf, const std::string& origin) {
    Dependencies found;
    auto entries = elf.dynamicEntries();
    if (!entries) {
        llvm::consumeError(entries.takeError());
        return found;
    }
    const std::string_view strings = dynamic_strings(elf, *entries);
    for (const Elf::Dyn& entry : *entries) {
        const std::string text = string_at(strings, entry.getVal());
        if (entry.getTag() == llvm::ELF::DT_NEEDED) found.names.push_back(text);
        if (entry.getTag() == llvm::ELF::DT_RUNPATH) found.folders = split_runpath(text, origin);
    }
    return found;
}

bool is_compiler(const std::string& name) {
    return name.starts_with("libclang-cpp") || name.starts_with("libLLVM");
}

}  // namespace

std::optional<std::string> describe_compiler(const std::string& path) {
    const std::string plugin = real_path(path).value_or(path);
    const std::optional<Library> library = open_library(plugin);
    if (!library) return std::nullopt;
    std::string text = describe_file("libkvjit_compiler", plugin, *library);
    const Dependencies needed = read_dependencies(library->elf, parent_folder(plugin));
    for (const std::string& name : needed.names | std::views::filter(is_compiler)) {
        const std::string found = find_library(name, needed.folders);
        const std::optional<Library> dependency = open_library(found);
        if (!dependency) return std::nullopt;
        text += describe_file(name, found, *dependency);
    }
    return text;
}

}  // namespace kvjit::rt

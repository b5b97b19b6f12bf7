// Reads a library's file without loading it.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>

#include "elf_view.h"

namespace kvjit::rt {

/// Mapped to be read. Only the parts that its program headers name are touched: its ends may be 100 MB apart.
class LibraryFile {
public:
    /// nullopt if there is no readable ELF file at `path`.
    static std::optional<LibraryFile> open(const std::string& path);

    /// A line that distinguishes the library from others of the same `name`: "libkvjit_compiler build=5f1c...",
    /// wherever and whenever it was installed. A library without a build id is identified by place, size and time of
    /// change: "libkvjit_compiler /opt/lib/libkvjit_compiler.so size=82380328 mtime=1750723200.000000000".
    std::string describe(const std::string& name) const;

private:
    class Mapping;

    LibraryFile(std::string path, const struct stat& status, std::shared_ptr<const Mapping> mapping, const ElfView& elf)
        : path_(std::move(path)), status_(status), mapping_(std::move(mapping)), elf_(elf) {}

    std::string path_;
    struct stat status_;
    std::shared_ptr<const Mapping> mapping_;
    ElfView elf_;  // of the mapping
};

}  // namespace kvjit::rt

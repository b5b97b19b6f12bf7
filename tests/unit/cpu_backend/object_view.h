// An ELF object as its format's structures, read and written where it lies.
#pragma once

#include <elf.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kvjit::test {

struct ObjectView {
    explicit ObjectView(std::string& object)
        : header(reinterpret_cast<Elf64_Ehdr*>(object.data())),
          sections(reinterpret_cast<Elf64_Shdr*>(object.data() + header->e_shoff), header->e_shnum),
          bytes(object.data()) {}

    const char* name(const Elf64_Shdr& section) const {
        return bytes + sections[header->e_shstrndx].sh_offset + section.sh_name;
    }
    const char* name(const Elf64_Sym& symbol) const {
        return bytes + sections[section(".symtab")->sh_link].sh_offset + symbol.st_name;
    }
    template <class Entry>
    std::span<Entry> entries(const Elf64_Shdr& section) const {
        return {reinterpret_cast<Entry*>(bytes + section.sh_offset), section.sh_size / sizeof(Entry)};
    }
    std::span<Elf64_Sym> symbols() const { return entries<Elf64_Sym>(*section(".symtab")); }

    Elf64_Shdr* section(std::string_view wanted) const {
        return std::to_address(std::ranges::find_if(sections, [&](const auto& s) { return name(s) == wanted; }));
    }
    Elf64_Sym* symbol(std::string_view wanted) const {
        return std::to_address(std::ranges::find_if(symbols(), [&](const auto& s) { return name(s) == wanted; }));
    }

    Elf64_Ehdr* header;
    std::span<Elf64_Shdr> sections;
    char* bytes;
};

}  // namespace kvjit::test

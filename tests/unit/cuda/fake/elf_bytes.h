// ELF files of one piece, made up: cubins, and libraries that have notes alone.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace kvjit::test {

inline Elf64_Ehdr elf_header() {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    return header;
}

/// The header, the one entry of its table, and behind them what that entry describes.
template <class Entry>
std::string elf_file(const Elf64_Ehdr& header, const Entry& entry, const std::string& content) {
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    return bytes.append(reinterpret_cast<const char*>(&entry), sizeof entry) + content;
}

/// A file for CUDA, whose one section has `code`.
inline std::string cubin_of(const std::string& code) {
    constexpr Elf64_Half kCuda = 190;
    Elf64_Ehdr header = elf_header();
    header.e_machine = kCuda;
    header.e_shoff = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 1;
    Elf64_Shdr section{};
    section.sh_type = SHT_PROGBITS;
    section.sh_offset = sizeof header + sizeof section;
    section.sh_size = code.size();
    return elf_file(header, section, code);
}

/// A file whose one segment has `notes`.
inline std::string with_notes(const std::string& notes, std::uint64_t alignment = 4) {
    Elf64_Ehdr header = elf_header();
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    Elf64_Phdr segment{};
    segment.p_type = PT_NOTE;
    segment.p_offset = sizeof header + sizeof segment;
    segment.p_filesz = notes.size();
    segment.p_align = alignment;
    return elf_file(header, segment, notes);
}

}  // namespace kvjit::test

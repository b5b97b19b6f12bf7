#include "elf_view.h"

#include <cstring>

#include "hex.h"

namespace kvjit::rt {
namespace {

/// The next multiple of `alignment` or `offset` itself; 0, 1: no alignment.
std::size_t align(std::size_t offset, std::size_t alignment) {
    return alignment <= 1 ? offset : (offset + alignment - 1) / alignment * alignment;
}

}  // namespace

template <class T>
std::optional<T> ElfView::read(std::size_t offset) const {
    if (!is_inside(offset, sizeof(T))) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
}

std::optional<ElfView> ElfView::open(std::string_view bytes) {
    constexpr std::string_view kMagic(ELFMAG, SELFMAG);
    ElfView view(bytes, {});
    const auto header = view.read<Elf64_Ehdr>(0);
    if (!header || !bytes.starts_with(kMagic)) return std::nullopt;
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) return std::nullopt;
    view.header_ = *header;
    return view;
}

bool ElfView::is_inside(std::size_t offset, std::size_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
}

std::optional<Elf64_Phdr> ElfView::segment(unsigned index) const {
    const std::size_t start = std::size_t{index} * header_.e_phentsize;
    if (header_.e_phoff > bytes_.size()) return std::nullopt;
    return read<Elf64_Phdr>(header_.e_phoff + start);
}

std::optional<Elf64_Shdr> ElfView::section(unsigned index) const {
    const std::size_t start = std::size_t{index} * header_.e_shentsize;
    if (header_.e_shoff > bytes_.size()) return std::nullopt;
    return read<Elf64_Shdr>(header_.e_shoff + start);
}

bool ElfView::is_whole() const {
    for (unsigned i = 0; i < header_.e_phnum; ++i) {
        const auto found = segment(i);
        if (!found || !is_inside(found->p_offset, found->p_filesz)) return false;
    }
    for (unsigned i = 0; i < header_.e_shnum; ++i) {
        const auto found = section(i);
        if (!found || (found->sh_type != SHT_NOBITS && !is_inside(found->sh_offset, found->sh_size))) return false;
    }
    return true;
}

std::uint64_t ElfView::code_bytes() const {
    std::uint64_t bytes = 0;
    for (unsigned i = 0; i < header_.e_shnum; ++i) {
        const auto found = section(i);
        const bool is_code = found && (found->sh_flags & SHF_EXECINSTR) != 0 && found->sh_type != SHT_NOBITS;
        if (is_code && is_inside(found->sh_offset, found->sh_size)) bytes += found->sh_size;
    }
    return bytes;
}

std::string ElfView::build_id() const {
    for (unsigned i = 0; i < header_.e_phnum; ++i) {
        const auto found = segment(i);
        if (!found) return {};
        if (found->p_type != PT_NOTE || !is_inside(found->p_offset, found->p_filesz)) continue;
        if (std::string id = build_id_in(*found); !id.empty()) return id;
    }
    return {};
}

std::string ElfView::build_id_in(const Elf64_Phdr& notes) const {
    const std::string_view bytes = bytes_.substr(notes.p_offset, notes.p_filesz);
    const std::size_t alignment = notes.p_align == 8 ? 8 : 4;
    constexpr char kOwner[] = "GNU";  // with its NUL
    for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= bytes.size();) {
        const auto note = read<Elf64_Nhdr>(notes.p_offset + at);
        if (!note) return {};
        const std::size_t name = at + sizeof(Elf64_Nhdr);
        const std::size_t content = align(name + note->n_namesz, alignment);
        if (content > bytes.size() || note->n_descsz > bytes.size() - content) return {};
        if (note->n_type == NT_GNU_BUILD_ID &&
            bytes.substr(name, note->n_namesz) == std::string_view(kOwner, sizeof kOwner)) {
            return to_hex(bytes.substr(content, note->n_descsz));
        }
        at = align(content + note->n_descsz, alignment);
    }
    return {};
}

}  // namespace kvjit::rt

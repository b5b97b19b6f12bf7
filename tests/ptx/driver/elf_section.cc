#include "ptx/driver/elf_section.h"

#include <elf.h>

#include <cstring>

namespace kvjit::ptx {
namespace {

constexpr Elf64_Word kPtxSection = SHT_LOUSER + 0x707478;

template <class T>
T read(const char* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

}  // namespace

std::string file_of(std::string_view ptx) {
    struct {
        Elf64_Ehdr header{};
        Elf64_Shdr section{};
    } front;
    std::memcpy(front.header.e_ident, ELFMAG, SELFMAG);
    front.header.e_ident[EI_CLASS] = ELFCLASS64;
    front.header.e_ident[EI_DATA] = ELFDATA2LSB;
    front.header.e_machine = EM_CUDA;
    front.header.e_shoff = sizeof front.header;
    front.header.e_shentsize = sizeof front.section;
    front.header.e_shnum = 1;
    front.section.sh_type = kPtxSection;
    front.section.sh_offset = sizeof front;
    front.section.sh_size = ptx.size();
    front.section.sh_addralign = 1;
    std::string bytes(reinterpret_cast<const char*>(&front), sizeof front);
    return bytes.append(ptx);
}

std::string_view ptx_of(const char* cubin) {
    const auto header = read<Elf64_Ehdr>(cubin);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
    for (unsigned i = 0; i < header.e_shnum; ++i) {
        const auto section = read<Elf64_Shdr>(cubin + header.e_shoff + std::size_t{i} * header.e_shentsize);
        if (section.sh_type == kPtxSection) return {cubin + section.sh_offset, section.sh_size};
    }
    return {};
}

}  // namespace kvjit::ptx

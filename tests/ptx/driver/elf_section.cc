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

template <class T>
void append(std::string& bytes, const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

std::string with_ptx(std::string_view cubin, std::string_view ptx) {
    auto header = read<Elf64_Ehdr>(cubin.data());
    const std::string_view sections = cubin.substr(header.e_shoff, std::size_t{header.e_shnum} * header.e_shentsize);
    Elf64_Shdr added{};
    added.sh_type = kPtxSection;
    added.sh_offset = cubin.size();
    added.sh_size = ptx.size();
    added.sh_addralign = 1;
    std::string bytes(cubin);
    bytes.append(ptx);
    bytes.resize((bytes.size() + 7) / 8 * 8);
    header.e_shoff = bytes.size();
    ++header.e_shnum;
    bytes.append(sections);
    append(bytes, added);
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
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

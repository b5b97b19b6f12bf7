// A bounds-checked view of ELF bytes, without LLVM: a library's build id, and whether a cubin is whole.
#pragma once

#include <elf.h>

#include <optional>
#include <string>
#include <string_view>

namespace kvjit::rt {

/// Bytes of a 64-bit little-endian ELF file, which may be damaged: nothing outside of them is ever read. Doesn't own
/// the bytes.
class ElfView {
public:
    /// nullopt if `bytes` don't begin with such a file's header.
    static std::optional<ElfView> open(std::string_view bytes);

    /// EM_X86_64, EM_CUDA.
    unsigned machine() const { return header_.e_machine; }
    /// Whether all segments and sections lie inside the bytes.
    bool is_whole() const;
    /// Bytes of all sections that are executed.
    std::uint64_t code_bytes() const;
    /// In hexadecimal digits; empty if there is none.
    std::string build_id() const;

private:
    ElfView(std::string_view bytes, const Elf64_Ehdr& header) : bytes_(bytes), header_(header) {}

    /// The record at `offset`; nullopt if that lies outside.
    template <class T>
    std::optional<T> read(std::size_t offset) const;
    std::optional<Elf64_Phdr> segment(unsigned index) const;
    std::optional<Elf64_Shdr> section(unsigned index) const;
    bool is_inside(std::size_t offset, std::size_t size) const;
    std::string build_id_in(const Elf64_Phdr& notes) const;

    std::string_view bytes_;
    Elf64_Ehdr header_;
};

}  // namespace kvjit::rt

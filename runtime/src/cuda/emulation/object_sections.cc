#include "cuda/emulation/object_sections.h"

#include <llvm/Object/ELF.h>

#include <cstring>
#include <utility>

namespace kvjit::emulation {
namespace {

using llvm::object::ELF64LE;
using ElfFile = llvm::object::ELFFile<ELF64LE>;

template <class T>
T take(llvm::Expected<T> value) {
    if (value) return std::move(*value);
    llvm::consumeError(value.takeError());
    throw Unreadable();
}

class Sections {
public:
    explicit Sections(const std::string& object) : file_(take(ElfFile::create(object))) {}

    std::string read(const std::string& wanted) const {
        for (const ELF64LE::Shdr& section : take(file_.sections())) {
            if (take(file_.getSectionName(section)) != wanted) continue;
            const auto bytes = take(file_.getSectionContents(section));
            std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            relocate(text, ".rela" + wanted);
            return text;
        }
        return {};
    }

private:
    void relocate(std::string& bytes, const std::string& relocations) const {
        for (const ELF64LE::Shdr& section : take(file_.sections())) {
            if (take(file_.getSectionName(section)) != relocations) continue;
            const auto* symbols = take(file_.getSection(section.sh_link));
            for (const ELF64LE::Rela& each : take(file_.relas(section))) {
                const auto* symbol = take(file_.getEntry<ELF64LE::Sym>(*symbols, each.getSymbol(false)));
                apply(bytes, each, *symbol);
            }
        }
    }

    // Code has an address; what strings are referred to by is their offset in their section.
    void apply(std::string& bytes, const ELF64LE::Rela& relocation, const ELF64LE::Sym& symbol) const {
        std::uint64_t value = symbol.st_value + static_cast<std::uint64_t>(relocation.r_addend);
        const bool wide = relocation.getType(false) == llvm::ELF::R_X86_64_64;
        if (wide) value += take(file_.getSection(symbol.st_shndx))->sh_addr;
        const std::size_t size = wide ? 8 : 4;
        if (relocation.r_offset > bytes.size() || bytes.size() - relocation.r_offset < size) throw Unreadable();
        std::memcpy(&bytes[relocation.r_offset], &value, size);
    }

    ElfFile file_;
};

}  // namespace

std::string read_section(const std::string& object, const std::string& name) {
    return Sections(object).read(name);
}

}  // namespace kvjit::emulation

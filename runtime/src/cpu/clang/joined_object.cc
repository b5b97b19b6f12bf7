#include "joined_object.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/Object/ELF.h>
#include <llvm/Support/Alignment.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace kvjit::rt {
namespace {

namespace elf = llvm::ELF;
using File = llvm::object::ELF64LEFile;
using FileHeader = File::Elf_Ehdr;
using Header = File::Elf_Shdr;
using Symbol = File::Elf_Sym;
using Relocation = File::Elf_Rela;
using Bytes = llvm::SmallString<0>;

template <class T>
llvm::StringRef bytes_of(llvm::ArrayRef<T> values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::uint32_t count_of(const auto& values) {
    return static_cast<std::uint32_t>(values.size());
}

void align(Bytes& bytes, std::uint64_t alignment, char padding = '\0') {
    bytes.resize(llvm::alignTo(bytes.size(), std::max<std::uint64_t>(alignment, 1)), padding);
}

/// Strings that end with NUL, each once; the empty one is at 0.
class Strings {
public:
    std::uint32_t place_of(llvm::StringRef text) {
        const auto [entry, added] = places_.try_emplace(text, count_of(bytes_));
        if (added) bytes_ += llvm::StringRef(entry->getKeyData(), text.size() + 1);
        return entry->second;
    }
    llvm::StringRef bytes() const { return bytes_; }

private:
    llvm::StringMap<std::uint32_t> places_{{"", 0}};
    Bytes bytes_{llvm::StringRef("", 1)};
};

/// What a symbol of an input became: the symbol of that number, of its kind. That of a section is that of the section
/// which took its bytes, `offset` after those that were there.
struct Target {
    enum class Kind { kSection, kLocal, kGlobal } kind = Kind::kSection;
    std::uint32_t number = 0;
    std::uint64_t offset = 0;
};

struct Section {
    std::string name;
    Header header{};
    Bytes bytes;
    llvm::SmallVector<std::pair<Relocation, Target>> relocations;  // whose symbols have no final numbers yet
};

/// Where a section of an input went.
struct Place {
    std::uint32_t section = 0;
    std::uint64_t offset = 0;
};

struct Input {
    const File& file;
    llvm::ArrayRef<Header> headers;
    llvm::SmallVector<Place> places;    // of its sections
    llvm::SmallVector<Target> targets;  // of its symbols
};

class Joiner {
public:
    llvm::Error add(llvm::StringRef object) {
        auto file = File::create(object);
        if (!file) return file.takeError();
        auto headers = file->sections();
        if (!headers) return headers.takeError();
        Input input{*file, *headers, llvm::SmallVector<Place>(headers->size()), {}};
        for (const auto& step : {&Joiner::add_content, &Joiner::add_symbols, &Joiner::add_relocations}) {
            for (const Header& header : input.headers) {
                if (llvm::Error error = (this->*step)(input, header)) return error;
            }
        }
        header_ = file->getHeader();
        return llvm::Error::success();
    }

    /// The joined object. It uses up what was added.
    Bytes write() {
        contents_ = count_of(sections_);
        file_.resize(sizeof(FileHeader));
        for (std::uint32_t i = 1; i < contents_; ++i) place_bytes(sections_[i].header, sections_[i].bytes);
        add_symbol_table();
        for (std::uint32_t i = 1; i < contents_; ++i) add_relocation_table(i);
        names_.place_of(kNames);
        add_table(kNames, elf::SHT_STRTAB, 0, names_.bytes());
        finish();
        return std::move(file_);
    }

private:
    // ---- Adding an object ------------------------------------------------------------------------------------------

    llvm::Error add_content(Input& input, const Header& header) {
        using namespace elf;
        if (llvm::is_contained({SHT_NULL, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_GROUP}, header.sh_type)) return ok();
        auto name = input.file.getSectionName(header);
        if (!name) return name.takeError();
        if (header.sh_link != 0 || header.sh_type == SHT_NOBITS || header.sh_type == SHT_REL) return refuse(*name);
        auto content = input.file.getSectionContents(header);
        if (!content) return content.takeError();
        const std::uint32_t number = section_of(*name, header);
        Section& section = sections_[number];
        if (!is_alike(section.header, header)) return refuse(*name);
        constexpr char kNoOperation = '\x90';
        align(section.bytes, header.sh_addralign, header.sh_flags & SHF_EXECINSTR ? kNoOperation : '\0');
        if (header.sh_addralign > section.header.sh_addralign) section.header.sh_addralign = header.sh_addralign;
        input.places[&header - input.headers.data()] = {number, section.bytes.size()};
        section.bytes += bytes_of(*content);
        return ok();
    }

    /// Whether one section may have the bytes of both.
    static bool is_alike(const Header& a, const Header& b) {
        constexpr auto kKind = ~std::uint64_t{elf::SHF_GROUP};
        return a.sh_type == b.sh_type && a.sh_entsize == b.sh_entsize && (a.sh_flags & kKind) == (b.sh_flags & kKind);
    }

    std::uint32_t section_of(llvm::StringRef name, const Header& like) {
        const auto [entry, added] = section_numbers_.try_emplace(name, count_of(sections_));
        if (!added) return entry->second;
        Section& section = sections_.emplace_back();
        section.name = name;
        section.header = like;
        section.header.sh_name = names_.place_of(name);
        section.header.sh_flags = like.sh_flags & ~std::uint64_t{elf::SHF_GROUP};
        return entry->second;
    }

    llvm::Error add_symbols(Input& input, const Header& header) {
        if (header.sh_type != elf::SHT_SYMTAB) return ok();
        auto symbols = input.file.symbols(&header);
        if (!symbols) return symbols.takeError();
        auto strings = input.file.getStringTableForSymtab(header);
        if (!strings) return strings.takeError();
        for (Symbol symbol : *symbols) {
            auto name = symbol.getName(*strings);
            if (!name) return name.takeError();
            input.targets.push_back(add_symbol(input, symbol, *name));
        }
        return ok();
    }

    Target add_symbol(const Input& input, Symbol symbol, llvm::StringRef name) {
        using Kind = Target::Kind;
        if (symbol.st_shndx != elf::SHN_UNDEF && symbol.st_shndx < elf::SHN_LORESERVE) {
            const Place& place = input.places[symbol.st_shndx];
            if (symbol.getType() == elf::STT_SECTION) return {Kind::kSection, place.section, place.offset};
            symbol.st_shndx = static_cast<std::uint16_t>(place.section);
            symbol.st_value = symbol.st_value + place.offset;
        }
        symbol.st_name = strings_.place_of(name);
        if (symbol.getBinding() != elf::STB_LOCAL) return {Kind::kGlobal, add_global(symbol, name), 0};
        if (symbol.st_shndx == elf::SHN_UNDEF) return {};  // the table's first one
        locals_.push_back(symbol);
        return {Kind::kLocal, count_of(locals_) - 1, 0};
    }

    std::uint32_t add_global(const Symbol& symbol, llvm::StringRef name) {
        const auto [entry, added] = global_numbers_.try_emplace(name, count_of(globals_));
        if (added)
            globals_.push_back(symbol);
        else if (globals_[entry->second].st_shndx == elf::SHN_UNDEF)
            globals_[entry->second] = symbol;
        return entry->second;
    }

    llvm::Error add_relocations(Input& input, const Header& header) {
        if (header.sh_type != elf::SHT_RELA) return ok();
        auto relocations = input.file.relas(header);
        if (!relocations) return relocations.takeError();
        const Place& place = input.places[header.sh_info];
        if (place.section == 0) return refuse("relocations");
        for (Relocation relocation : *relocations) {
            const Target& target = input.targets[relocation.getSymbol(false)];
            relocation.r_offset = relocation.r_offset + place.offset;
            relocation.r_addend = relocation.r_addend + static_cast<std::int64_t>(target.offset);
            sections_[place.section].relocations.emplace_back(relocation, target);
        }
        return ok();
    }

    // ---- Writing ---------------------------------------------------------------------------------------------------
    // Symbols: none, one for each section, other local ones, global ones.

    std::uint32_t symbol_number(const Target& target) const {
        switch (target.kind) {
            case Target::Kind::kSection:
                return target.number;
            case Target::Kind::kLocal:
                return contents_ + target.number;
            case Target::Kind::kGlobal:
                return contents_ + count_of(locals_) + target.number;
        }
        return 0;
    }

    void place_bytes(Header& header, llvm::StringRef bytes) {
        align(file_, header.sh_addralign);
        header.sh_offset = file_.size();
        header.sh_size = bytes.size();
        file_ += bytes;
    }

    /// A section that the file needs beside those of the objects.
    Header& add_table(llvm::StringRef name, std::uint32_t type, std::uint64_t entry_bytes, llvm::StringRef bytes) {
        Header& header = sections_.emplace_back().header;
        header.sh_name = names_.place_of(name);
        header.sh_type = type;
        header.sh_addralign = entry_bytes == 0 ? 1 : 8;
        header.sh_entsize = entry_bytes;
        place_bytes(header, bytes);
        return header;
    }

    void add_symbol_table() {
        llvm::SmallVector<Symbol> symbols(contents_);
        for (std::uint32_t i = 1; i < contents_; ++i) {
            symbols[i].setBindingAndType(elf::STB_LOCAL, elf::STT_SECTION);
            symbols[i].st_shndx = static_cast<std::uint16_t>(i);
        }
        symbols.append(locals_);
        Header& header = add_table(".symtab", elf::SHT_SYMTAB, sizeof(Symbol), "");
        header.sh_info = count_of(symbols);  // where global ones begin
        header.sh_link = contents_ + 1;
        symbols.append(globals_);
        place_bytes(header, bytes_of<Symbol>(symbols));
        add_table(".strtab", elf::SHT_STRTAB, 0, strings_.bytes());
    }

    void add_relocation_table(std::uint32_t number) {
        llvm::SmallVector<Relocation> relocations;
        for (auto& [relocation, target] : sections_[number].relocations) {
            relocation.setSymbol(symbol_number(target), false);
            relocations.push_back(relocation);
        }
        if (relocations.empty()) return;
        const std::string name = ".rela" + sections_[number].name;
        Header& header = add_table(name, elf::SHT_RELA, sizeof(Relocation), bytes_of<Relocation>(relocations));
        header.sh_flags = elf::SHF_INFO_LINK;
        header.sh_info = number;
        header.sh_link = contents_;  // the symbol table
    }

    void finish() {
        align(file_, 8);
        header_.e_shoff = file_.size();
        header_.e_shnum = static_cast<std::uint16_t>(sections_.size());
        header_.e_shstrndx = static_cast<std::uint16_t>(sections_.size() - 1);
        for (const Section& section : sections_) file_ += bytes_of<Header>(section.header);
        llvm::copy(bytes_of<FileHeader>(header_), file_.begin());
    }

    static llvm::Error ok() { return llvm::Error::success(); }

    static llvm::Error refuse(llvm::StringRef section) {
        return llvm::createStringError("two objects can't be joined: " + section);
    }

    static constexpr llvm::StringLiteral kNames = ".shstrtab";

    FileHeader header_{};
    llvm::SmallVector<Section, 0> sections_{1};  // number 0 is none
    llvm::StringMap<std::uint32_t> section_numbers_, global_numbers_;
    llvm::SmallVector<Symbol> locals_, globals_;  // sections' own symbols are not among the local ones
    Strings names_, strings_;                     // of sections and of symbols
    std::uint32_t contents_ = 0;                  // sections that the objects have, number 0 included
    Bytes file_;
};

}  // namespace

llvm::Expected<llvm::SmallString<0>> join_objects(llvm::StringRef first, llvm::StringRef second) {
    Joiner joiner;
    for (const llvm::StringRef object : {first, second}) {
        if (llvm::Error error = joiner.add(object)) return error;
    }
    return joiner.write();
}

}  // namespace kvjit::rt

#include "code_line.h"

#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/Object/ObjectFile.h>

namespace kvjit::rt {
namespace {

using llvm::object::ObjectFile, llvm::object::SectionedAddress;
using LineTable = llvm::DWARFDebugLine::LineTable;

// LLVM's own handler would print: an object without a readable line table runs all the same.
void ignore(llvm::Error error) {
    llvm::consumeError(std::move(error));
}

SectionedAddress in_section(const ObjectFile& object, std::uint64_t address) {
    for (const llvm::object::SectionRef& section : object.sections()) {
        const bool inside = address - section.getAddress() < section.getSize();
        if (section.isText() && inside) return {address, section.getIndex()};
    }
    return {address};
}

std::string name_of(const LineTable& table, std::uint32_t row) {
    // Line 0 is code of no line: what came before it tells more.
    while (row > 0 && table.Rows[row].Line == 0) --row;
    constexpr auto kPath = llvm::DILineInfoSpecifier::FileLineInfoKind::RelativeFilePath;
    std::string file;
    if (!table.getFileNameByIndex(table.Rows[row].File, "", kPath, file)) return {};
    return file + ":" + std::to_string(table.Rows[row].Line);
}

}  // namespace

std::string code_line(llvm::StringRef bytes, std::uint64_t address) {
    auto object = ObjectFile::createObjectFile({bytes, "object"});
    if (!object) return ignore(object.takeError()), "";
    const SectionedAddress wanted = in_section(**object, address);
    const auto debug = llvm::DWARFContext::create(**object, llvm::DWARFContext::ProcessDebugRelocations::Process,
                                                  nullptr, "", ignore, ignore);
    for (const std::unique_ptr<llvm::DWARFUnit>& unit : debug->compile_units()) {
        const LineTable* table = debug->getLineTableForUnit(unit.get());
        const std::uint32_t row = table ? table->lookupAddress(wanted) : UINT32_MAX;
        if (row != UINT32_MAX) return name_of(*table, row);
    }
    return {};
}

}  // namespace kvjit::rt

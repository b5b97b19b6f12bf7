#include "cpu/function_name.h"

#include <llvm/Demangle/Demangle.h>

#include <cstdlib>

namespace kvjit::rt {
namespace {

/// "kvjit::add_block" of "_ZN5kvjitL9add_block...": without parameters, which fill a screen. Other names as they are.
std::string readable(const std::string& name) {
    llvm::ItaniumPartialDemangler demangler;
    if (demangler.partialDemangle(name.c_str())) return name;
    char* text = demangler.getFunctionName(nullptr, nullptr);
    std::string found = text != nullptr ? text : name;
    std::free(text);
    return found;
}

}  // namespace

std::string shown_name(const std::string& program, const std::string& symbol) {
    return program + ":" + readable(symbol);
}

}  // namespace kvjit::rt

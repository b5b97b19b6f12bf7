// From an address in loaded code to the line that it was compiled from, by the line table that Clang wrote (DWARF).
#pragma once

#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <string>

namespace kvjit::rt {

/// "cuda/store.cu:40" of the instruction at `address`; empty where the object doesn't tell. `object`: with the
/// addresses of its sections in their headers.
std::string code_line(llvm::StringRef object, std::uint64_t address);

}  // namespace kvjit::rt

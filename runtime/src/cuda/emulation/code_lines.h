// From an address in a loaded kernel to a line of its template, by the line table that Clang wrote into the object
// (DWARF 5, section 6.2). For error messages: slow.
#pragma once

#include <string>

namespace kvjit::emulation {

/// "cuda/store.cu:40" of the call that returns to `address`; "an unknown line" where no loaded object tells.
std::string code_line(const void* address);

}  // namespace kvjit::emulation

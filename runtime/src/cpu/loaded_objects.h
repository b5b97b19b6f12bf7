// The objects whose code is loaded, as gdb sees them: its JIT interface is a list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvjit::rt {

/// Puts an object, with the addresses of its sections filled in, into the list and tells gdb. It stays the caller's,
/// who removes it before it ends. LLVM's own way there takes memory that it doesn't check for. Thread-safe.
void add_loaded_object(std::string_view object);

/// Takes the object whose bytes lie there out of the list and tells gdb, which LLVM 19 doesn't do. Thread-safe.
void remove_loaded_object(const char* bytes);

/// The object whose code is loaded at `address`; empty if none is. Thread-safe.
std::string find_loaded_object(std::uint64_t address);

}  // namespace kvjit::rt

// The list of objects whose code is loaded, which is gdb's JIT interface.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvjit::rt {

/// Adds an object, with the addresses of its sections filled in, to the list and notifies gdb. The caller owns it, and
/// removes it before freeing it. LLVM's own function doesn't check its allocation. Thread-safe.
void add_loaded_object(std::string_view object);

/// Removes the object with these bytes from the list and notifies gdb, which LLVM 19 doesn't do. Thread-safe.
void remove_loaded_object(const char* bytes);

/// The object whose code is loaded at `address`; empty if none is. Thread-safe.
std::string find_loaded_object(std::uint64_t address);

}  // namespace kvjit::rt

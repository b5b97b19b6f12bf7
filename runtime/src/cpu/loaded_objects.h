// The objects whose code is loaded, as gdb sees them: its JIT interface is a list, and LLVM's JITLoaderGDB adds to it.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace kvjit::rt {

/// Held while the list is added to.
std::unique_lock<std::mutex> lock_loaded_objects();

/// Takes the object whose bytes lie there out of the list and tells gdb, which LLVM 19 doesn't do. Thread-safe.
void remove_loaded_object(const char* bytes);

/// The object, with the addresses of its sections filled in, whose code is loaded at `address`; empty if none is.
/// Thread-safe.
std::string find_loaded_object(std::uint64_t address);

}  // namespace kvjit::rt

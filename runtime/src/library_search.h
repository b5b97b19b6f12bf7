// The dynamic linker's search, without loading anything.
#pragma once

#include <expected>
#include <string>
#include <system_error>

namespace kvjit::rt {

/// The path with links, "." and ".." resolved; else the error. Like all functions here it throws std::bad_alloc:
/// running out of memory must not look like an answer about the files.
std::expected<std::string, std::error_code> real_path(const std::string& path);

/// Whether real_path found no such file, as opposed to being unable to look.
bool is_absent(const std::error_code& error);

/// Folder of a path; empty for a bare name.
std::string parent_folder(const std::string& path);

/// Folder of the library or executable that holds this function; empty if unknown.
std::string own_folder();

/// Why this process can't open libraries, as a clause; null: it can. A program linked with -static can't: glibc's
/// dlopen would load a second C library. Thread-safe.
const char* why_no_libraries();

/// Resolved path of the library that the linker would load for `name`.
/// Searches as the linker does: loaded libraries, LD_LIBRARY_PATH, the default folders; but not ld.so.cache.
/// Empty if none has it, or this process can't open libraries. Thread-safe.
std::string find_library(const std::string& name);

}  // namespace kvjit::rt

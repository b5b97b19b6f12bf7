// What the dynamic linker would do, asked without doing it.
#pragma once

#include <expected>
#include <string>
#include <system_error>
#include <vector>

namespace kvjit::rt {

/// The path with links, "." and ".." resolved; else why it can't be. Throws std::bad_alloc, as all here do: an answer
/// for want of memory would be one about the files.
std::expected<std::string, std::error_code> real_path(const std::string& path);

/// Whether real_path says that there is no such file, and not that it could not be looked for.
bool is_absent(const std::error_code& error);

/// Folder of a path; empty for a bare name.
std::string parent_folder(const std::string& path);

/// Folder of the library or executable that holds this function; empty if unknown.
std::string own_folder();

/// Why this process can't open libraries, a clause; null: it can. A program that was linked with -static can't: glibc's
/// dlopen would bring a second C library into it. Thread-safe.
const char* why_no_libraries();

/// Resolved path of what the linker would take for `name`, needed by a library whose DT_RUNPATH is `runpath`. Looks
/// where the linker does: already loaded, LD_LIBRARY_PATH, runpath, the default folders; not in ld.so.cache. Empty if
/// none has it, or this process can't open libraries. Thread-safe.
std::string find_library(const std::string& name, const std::vector<std::string>& runpath);

}  // namespace kvjit::rt

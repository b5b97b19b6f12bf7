// Sections of a loaded object, relocated as far as its line table needs it.
#pragma once

#include <exception>
#include <string>

namespace kvjit::emulation {

/// The object isn't what the compiler makes.
struct Unreadable : std::exception {};

/// `object`: with the addresses of its sections in their headers. Empty if it has no such section. Throws Unreadable.
std::string read_section(const std::string& object, const std::string& name);

}  // namespace kvjit::emulation

// Programs by the names that users give them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace kvjit::tool {

/// Values of --program: names of programs, and all, as bits of kvjit_programs.
std::map<std::string, std::uint32_t> program_names();

/// "decode, merge, store": the programs whose bits are in `programs`.
std::string names_of(std::uint32_t programs);

}  // namespace kvjit::tool

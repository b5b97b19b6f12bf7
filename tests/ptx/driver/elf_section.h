// PTX within a cubin, as one more section of the file: what the stand-in for NVRTC adds, that for the driver finds.
#pragma once

#include <string>
#include <string_view>

namespace kvjit::ptx {

/// `cubin` with `ptx` in a section of its own behind everything else. Precondition: a 64-bit ELF file.
std::string with_ptx(std::string_view cubin, std::string_view ptx);

/// The PTX in the file that begins at `cubin`; empty if it has none. The file tells its own length, as the driver's
/// interface wants it.
std::string_view ptx_of(const char* cubin);

}  // namespace kvjit::ptx

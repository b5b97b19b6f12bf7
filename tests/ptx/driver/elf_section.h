// PTX in the place of a cubin, as the only section of an ELF file: what the stand-in for NVRTC makes, that for the
// driver finds.
#pragma once

#include <string>
#include <string_view>

namespace kvjit::ptx {

/// A whole file for the CUDA machine.
std::string file_of(std::string_view ptx);

/// The PTX in the file that begins at `cubin`; empty if it has none. The file tells its own length, as the driver's
/// interface wants it.
std::string_view ptx_of(const char* cubin);

}  // namespace kvjit::ptx

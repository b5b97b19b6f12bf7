// A cubin's instructions, as NVIDIA's own tools print them.
#pragma once

#include <string>

#include "result.h"

namespace kvjit::tool {

/// Runs nvdisasm, else cuobjdump, of $PATH or /usr/local/cuda/bin. Errors: there is neither, which says how to get one,
/// or it fails.
Result<std::string> disassemble_cubin(const std::string& cubin);

/// The listing that sass::analyse takes, by nvdisasm: with the sources' lines where the cubin has them. Errors: the
/// same.
Result<std::string> list_instructions(const std::string& cubin);

}  // namespace kvjit::tool

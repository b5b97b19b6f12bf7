// The table of instructions.
#pragma once

#include <span>
#include <string_view>

#include "ptx/machine/kernel.h"

namespace kvjit::ptx {

/// An instruction with operands of certain widths. Where a name has several rows, the first serves whose operands fit.
///
/// `operands`: destinations, "=", sources in their order; vectors in braces are their elements in a row. Of each its
/// width (Width's letters); W: a register of 32 bits that is used asynchronously, so that it goes into one of the
/// kernel's lists; A: an address with a 64-bit base, a: with a 32-bit one; i: a number in the text; t: a label.
struct InstructionRow {
    std::string_view name;
    std::string_view operands;
    Handler execute;
    /// Compilers copy registers that no lane goes on to use: copies of never-written ones are as if never written.
    bool is_copy = false;
};

std::span<const InstructionRow> instruction_table();

/// What the PTX calls it.
inline std::string_view name_of(const Instruction& in) {
    return instruction_table()[in.opcode].name;
}

}  // namespace kvjit::ptx

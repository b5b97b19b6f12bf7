// x86-64's instructions as numbers.
#pragma once

#include <string_view>

namespace kvjit::tool {

/// What instructions do, counted where they stand.
struct InstructionCounts {
    int instructions = 0;
    int fmas = 0;           // fused multiply-adds, those of bfloat16 pairs, bytes and tiles among them
    int tile_products = 0;  // those of AMX's tiles, which are fmas, too
    int multiplies = 0;     // of floating-point numbers, not fused: targets without FMA
    int loads = 0;          // from memory, as an operand or alone
    int stores = 0;
    int spills = 0;  // registers saved to the frame
    int reloads = 0;
    int vector_bytes = 0;  // the widest register; 0: no vectors

    InstructionCounts& operator+=(const InstructionCounts& other);
};

/// Of one instruction, in AT&T's syntax, with the compiler's comment.
InstructionCounts count_instruction(std::string_view text, std::string_view comment);

}  // namespace kvjit::tool

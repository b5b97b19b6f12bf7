// What an instruction occupies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "inspect/sass/code.h"

namespace kvjit::tool::sass {

enum class Pipe { kTensor, kHalf, kFloat, kInt, kConvert, kShared, kGlobal, kControl };
inline constexpr std::array<std::string_view, 8> kPipeNames = {"tensor",  "half",   "float",  "int",
                                                               "convert", "shared", "global", "control"};

/// Instructions by pipe.
struct PipeCounts {
    std::array<std::int64_t, kPipeNames.size()> of{};

    std::int64_t& operator[](Pipe pipe) { return of[static_cast<std::size_t>(pipe)]; }
    std::int64_t operator[](Pipe pipe) const { return of[static_cast<std::size_t>(pipe)]; }
    std::int64_t all() const;
};

Pipe pipe_of(const Instruction& instruction);

/// The instructions that multiply keys and values: tensor cores' or float32's.
enum class Product { kTensor, kFloat };
bool is_product(Product product, const Instruction& instruction);

/// A copy to shared memory, a load from global memory or a store.
bool moves_data(const Instruction& instruction);
/// A load or a store of local memory: a spill.
bool is_local(const Instruction& instruction);

/// Bytes that a lane loads, stores or copies.
int bytes_of_lane(const Instruction& instruction);
/// Bytes that a warp copies from global to shared memory. Of narrow copies some lanes may copy nothing.
std::int64_t copied_bytes(const Instruction& instruction);
/// Cycles of shared memory, 128 bytes each, without bank conflicts, and as if no two lanes loaded the same bytes; of a
/// warpgroup's product, a warp's fourth.
int wavefronts(const Instruction& instruction);

/// Columns of a warpgroup's product of 16 steps; 0: it is another instruction.
int group_columns(const Instruction& instruction);

/// The shape of a tensor cores' instruction: "m16n8k16" of HMMA.16816.F32, "m64n128k16" of HGMMA.64x128x16.F32. "": of
/// another.
std::string product_shape(const Instruction& instruction);

}  // namespace kvjit::tool::sass

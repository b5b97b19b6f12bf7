// A kernel as the interpreter runs it: instructions with their operands resolved to places in a warp's registers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace kvjit::ptx {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

inline constexpr int kLanes = 32;
inline constexpr u32 kAllLanes = 0xffffffff;

/// 64 bytes of a warp's registers. A register of 16 bits takes one for its 32 lanes, of 32 bits two, of 64 bits four;
/// a predicate takes one, whose first 32 bits are its lanes. A register is named by its first unit.
struct alignas(64) Unit {
    std::byte bytes[64];
};
using Place = u16;

/// Widths of registers and operands, by the letters of the table of instructions.
enum class Width : char { kPredicate = 'p', k16 = 'h', k32 = 'w', k64 = 'l' };

/// A register that holds the same in all lanes and blocks: an immediate number or a symbol's address.
struct Constant {
    Place place;
    Width width;
    u64 bits;
};

enum class Special { kLane, kThreadX, kThreadsX, kBlockX, kBlockY, kBlocksX, kBlocksY };
/// A register that is filled when a warp starts.
struct SpecialRegister {
    Place place;
    Width width;
    Special what;
};

class Warp;
struct Instruction;
/// Executes an instruction for the active lanes.
using Handler = void (*)(Warp&, const Instruction&);

inline constexpr u32 kNowhere = 0xffffffff;
inline constexpr int kMaxOperands = 14;

struct Instruction {
    Handler execute = nullptr;
    u16 opcode = 0;  // its row in the table of instructions
    bool is_guarded = false, is_guard_negated = false, is_branch = false, is_copy = false;
    u8 destinations = 0, sources = 0;
    Place guard = 0;
    std::array<Place, kMaxOperands> operands{};  // destinations, then sources in order; an address is its base
    std::array<i32, 2> offsets{};                // of the addresses, in order
    std::array<i64, 4> immediates{};             // the numbers that an instruction takes in its text, in order
    u32 list = 0;                                // of the kernel's lists: registers that are used asynchronously
    u32 target = kNowhere;                       // of a branch
    u32 reconvergence = kNowhere;                // of a branch: where its lanes meet again; kNowhere: only at the end

    Place destination(int i) const { return operands[static_cast<std::size_t>(i)]; }
    Place source(int i) const { return operands[static_cast<std::size_t>(destinations + i)]; }
};

/// A place in a source: file, line, column.
struct SourcePlace {
    u32 file = 0, line = 0, column = 0;
    auto operator<=>(const SourcePlace&) const = default;
};

/// Where an instruction stands.
struct Origin {
    int line = 0;        // in the PTX
    SourcePlace source;  // of the last .loc; file 0: none
};

/// What .file and .loc said.
struct LineTable {
    std::map<u32, std::string> files;
    std::map<SourcePlace, SourcePlace> inlined_at;
    /// "cuda/machine/ptx.h:17, inlined at cuda/check.cu:29"; empty for no place.
    std::string describe(SourcePlace place) const;
    /// "kvjit_merge, PTX line 12 (cuda/merge.cu:30)"
    std::string where(const std::string& kernel, const Origin& origin) const;
};

struct Kernel {
    std::string name;
    std::string target;  // "sm_90a"; empty: not said
    u32 parameter_bytes = 0;
    u32 max_threads = 0;  // of a block; 0: not said
    std::size_t units = 0;
    std::vector<Constant> constants;
    std::vector<SpecialRegister> specials;
    std::vector<Instruction> instructions;
    std::vector<std::vector<Place>>
        lists;                           // of each wgmma.mma_async: the registers of D, then those of A if it has any
    std::vector<Origin> origins;         // of each instruction
    std::vector<std::string> registers;  // the name of each unit's register, for messages
    LineTable lines;
};

// Where the state spaces begin. Shared memory's first KiB is the system's, as on Hopper. A generic address is one of
// global memory, unless it lies in the window that stands for shared memory.
inline constexpr u64 kSharedBegin = 1024;
inline constexpr u64 kParameterBegin = 0x210;
inline constexpr u64 kSharedWindow = 0x7f00'0000'0000'0000;

}  // namespace kvjit::ptx

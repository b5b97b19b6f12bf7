#include "inspect/sass/pipes.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <span>
#include <utility>

namespace kvjit::tool::sass {
namespace {

using Opcodes = std::span<const std::string_view>;

constexpr std::string_view kConversions[] = {"MUFU", "F2F",  "F2FP", "F2I", "I2F", "I2FP",
                                             "F2IP", "FRND", "POPC", "FLO", "BREV"};
constexpr std::string_view kShared[] = {"LDS", "LDSM", "STS", "SHFL", "ATOMS"};
constexpr std::string_view kGlobal[] = {"LDG",   "LDGSTS", "STG", "LD",   "ST",  "ATOM",
                                        "ATOMG", "RED",    "LDC", "LDCU", "LDL", "STL"};
constexpr std::string_view kControl[] = {"BRA",       "BSSY",      "BSYNC",  "BREAK",   "BAR",   "WARPSYNC",
                                         "DEPBAR",    "LDGDEPBAR", "NOP",    "EXIT",    "CALL",  "RET",
                                         "YIELD",     "BMOV",      "MEMBAR", "ERRBAR",  "CCTL",  "ENDCOLLECTIVE",
                                         "NANOSLEEP", "VOTE",      "VOTEU",  "ACQBULK", "FENCE", "WARPGROUP"};
constexpr std::string_view kMoves[] = {"LDGSTS", "LDG", "LD", "STS", "STG", "ST"};
constexpr std::string_view kThroughShared[] = {"LDS", "STS", "LDGSTS", "SHFL", "ATOMS"};
constexpr std::pair<std::string_view, int> kWidths[] = {{"128", 16}, {"64", 8}, {"U16", 2},
                                                        {"S16", 2},  {"U8", 1}, {"S8", 1}};
constexpr int kLanes = 32;
constexpr int kWavefrontBytes = 128;

bool is_one_of(Opcodes opcodes, const Instruction& instruction) {
    return std::ranges::find(opcodes, instruction.opcode) != opcodes.end();
}

}  // namespace

std::int64_t PipeCounts::all() const {
    return std::accumulate(of.begin(), of.end(), std::int64_t{0});
}

Pipe pipe_of(const Instruction& instruction) {
    if (is_product(Product::kTensor, instruction)) return Pipe::kTensor;
    if (instruction.is_idle() || is_one_of(kControl, instruction)) return Pipe::kControl;
    if (is_one_of(kConversions, instruction)) return Pipe::kConvert;
    if (is_one_of(kShared, instruction)) return Pipe::kShared;
    if (is_one_of(kGlobal, instruction)) return Pipe::kGlobal;
    if (instruction.opcode.starts_with('H')) return Pipe::kHalf;
    return instruction.opcode.starts_with('F') ? Pipe::kFloat : Pipe::kInt;
}

bool is_product(Product product, const Instruction& instruction) {
    if (product == Product::kTensor) return instruction.opcode.ends_with("MMA");
    return instruction.opcode == "FFMA" || instruction.opcode == "FFMA2";
}

bool moves_data(const Instruction& instruction) {
    return is_one_of(kMoves, instruction) && !instruction.is_idle();
}

bool is_local(const Instruction& instruction) {
    return instruction.opcode == "LDL" || instruction.opcode == "STL";
}

int bytes_of_lane(const Instruction& instruction) {
    for (const auto& [modifier, bytes] : kWidths) {
        if (instruction.has(modifier)) return bytes;
    }
    return 4;
}

std::int64_t copied_bytes(const Instruction& instruction) {
    return instruction.opcode == "LDGSTS" ? kLanes * bytes_of_lane(instruction) : 0;
}

int wavefronts(const Instruction& instruction) {
    if (instruction.is_idle()) return 0;
    if (const int columns = group_columns(instruction)) {
        constexpr int kRowBytes = 16 * 2, kRows = 64, kWarps = 4;
        // The left operand is a register, or both are shared memory, by one descriptor.
        const bool is_shared = instruction.operands.size() > 1 && instruction.operands[1].starts_with("gdesc");
        const int rows = columns + (is_shared ? kRows : 0);
        return rows * kRowBytes / kWavefrontBytes / kWarps;
    }
    if (instruction.opcode == "LDSM") return instruction.has("2") ? 2 : instruction.has("1") ? 1 : 4;
    if (!is_one_of(kThroughShared, instruction)) return 0;
    return std::max(1, kLanes * bytes_of_lane(instruction) / kWavefrontBytes);
}

int group_columns(const Instruction& instruction) {
    if (instruction.opcode != "HGMMA" || instruction.modifiers.empty()) return 0;
    const std::string& shape = instruction.modifiers[0];  // "64x128x16"
    const std::size_t rows_end = shape.find('x');
    if (rows_end == shape.npos) return 0;
    int columns = 0;
    std::from_chars(shape.data() + rows_end + 1, shape.data() + shape.size(), columns);
    return 0 < columns && columns <= 256 ? columns : 0;
}

std::string product_shape(const Instruction& instruction) {
    constexpr std::string_view kRowsColumns = "168";
    if (!is_product(Product::kTensor, instruction) || instruction.modifiers.empty()) return "";
    if (const int columns = group_columns(instruction)) return "m64n" + std::to_string(columns) + "k16";
    const std::string& shape = instruction.modifiers[0];
    return shape.starts_with(kRowsColumns) ? "m16n8k" + shape.substr(kRowsColumns.size()) : "";
}

}  // namespace kvjit::tool::sass

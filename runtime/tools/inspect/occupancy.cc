#include "inspect/occupancy.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "generator/architecture.h"

namespace kvjit::tool {
namespace {

constexpr int kWarp = 32;
constexpr int kParts = 4;           // of a multiprocessor, each with registers and warps of its own
constexpr int kRegisters = 16384;   // of a part, all architectures
constexpr int kRegisterUnit = 256;  // in which a warp gets them
constexpr std::int64_t kSharedUnit = 128;
constexpr std::int64_t kSharedOfBlock = 1024;  // that the system takes for each block

/// Limits of a multiprocessor.
struct Limits {
    int number;  // ten times the compute capability
    int warps, blocks;
    int shared_kib;
};

constexpr Limits kLimits[] = {
    {80, 64, 32, 164},  {86, 48, 16, 100},  {87, 48, 16, 164},  {89, 48, 24, 100},
    {90, 64, 32, 228},  {100, 64, 32, 228}, {101, 48, 24, 228}, {103, 64, 32, 228},
    {110, 48, 24, 228}, {120, 48, 24, 100}, {121, 48, 24, 100},
};

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
    return (value + unit - 1) / unit * unit;
}

}  // namespace

std::optional<Occupancy> occupancy(const std::string& architecture, const BlockNeeds& needs) {
    const int number = gen::architecture_of(architecture).number;
    const auto* limits = std::ranges::find(kLimits, number, &Limits::number);
    if (limits == std::end(kLimits) || needs.threads <= 0 || needs.registers <= 0) return std::nullopt;
    const std::int64_t warps = (needs.threads + kWarp - 1) / kWarp;
    const std::int64_t of_warp = round_up(std::int64_t{needs.registers} * kWarp, kRegisterUnit);
    const std::int64_t shared = round_up(needs.shared_bytes, kSharedUnit) + kSharedOfBlock;
    const std::pair<std::int64_t, const char*> bounds[] = {
        {kRegisters / of_warp * kParts / warps, "registers"},
        {std::int64_t{limits->shared_kib} * 1024 / shared, "shared memory"},
        {limits->warps / warps, "threads"},
        {limits->blocks, "blocks"},
    };
    const auto& [blocks, limit] = *std::ranges::min_element(bounds, {}, &std::pair<std::int64_t, const char*>::first);
    return Occupancy{static_cast<int>(blocks), static_cast<int>(blocks * warps), limits->warps, limit};
}

}  // namespace kvjit::tool

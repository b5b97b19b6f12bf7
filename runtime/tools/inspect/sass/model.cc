#include "inspect/sass/model.h"

#include <algorithm>
#include <vector>

namespace kvjit::tool::sass {
namespace {

/// The part of its cycles in which a unit of a multiprocessor works at best, with the few warps of attention there.
constexpr double kBusy = 0.6;
/// The part of the published bandwidth that a copy reaches.
constexpr double kStreamed = 0.9;
/// Seconds from a load to its value, under load: out of memory, and out of the second-level cache.
constexpr double kLatency = 600e-9, kCacheLatency = 200e-9;

/// Cycles of a multiprocessor for a tile of one warp.
struct Bound {
    std::string_view name;
    double cycles;
};

double real(std::int64_t count) {
    return static_cast<double>(count);
}

/// Seconds for which a warp waits in a tile. As many trips as there are copies count as from memory: the cache's
/// scales. Tables and masks serve many blocks.
double waited(const TileFigures& tile) {
    const int from_memory = std::min(tile.copies, tile.trips);
    return from_memory * kLatency + (tile.trips - from_memory) * kCacheLatency;
}

/// Cycles of a quarter of a multiprocessor for the tile's products. Those of warpgroups have the published rate.
double product_cycles(const Modelled& program, const Gpu& gpu) {
    const std::int64_t groups = program.tile.group_products;
    if (groups != 0) return real(groups) * gpu.best_product_cycles();
    return real(program.pipes[Pipe::kTensor]) * gpu.product_cycles;
}

std::vector<Bound> bounds_of(const Modelled& program, const Gpu& gpu) {
    const TileFigures& tile = program.tile;
    const double issue = real(program.pipes.all()) / kBusy / kQuarters;
    return {{"issue", issue},
            {"tensor", product_cycles(program, gpu) / kBusy / kQuarters},
            {"float", real(program.pipes[Pipe::kFloat]) * gpu.float_cycles / kBusy / kQuarters},
            {"shared", real(tile.shared_cycles) / kBusy},
            // A warp that waits issues nothing, and works alone meanwhile.
            {"waits", tile.trips == 0 ? 0 : waited(tile) * gpu.clock / program.warps + issue}};
}

/// Decode's further bounds: the memory's bandwidth, and its latency where too few bytes are on their way.
void add_memory(const Modelled& program, const Gpu& gpu, std::vector<Bound>& bounds) {
    const double bytes = real(program.tile.cache_bytes);
    const double flight = program.warps * real(program.tile.flight_bytes) / (kLatency * gpu.clock);  // bytes a cycle
    bounds.push_back({"memory", bytes / (kStreamed * gpu.bytes_a_cycle())});
    bounds.push_back({"flight", bytes / flight});
}

/// Cycles of a multiprocessor for the tile at all of the bandwidth, or of the arithmetic.
double best_cycles(const Modelled& program, const Gpu& gpu) {
    const double work = real(program.is_decode ? program.tile.cache_bytes : program.tile.operations);
    return work / (published_rate(program, gpu) / gpu.multiprocessors / gpu.clock);
}

}  // namespace

Prediction predict(const Modelled& program, const Gpu& gpu) {
    std::vector<Bound> bounds = bounds_of(program, gpu);
    if (program.is_decode) add_memory(program, gpu, bounds);
    const Bound longest = *std::ranges::max_element(bounds, {}, &Bound::cycles);
    return {best_cycles(program, gpu) / longest.cycles, longest.name};
}

double published_rate(const Modelled& program, const Gpu& gpu) {
    if (program.is_decode) return gpu.bandwidth;
    return program.pipes[Pipe::kTensor] != 0 ? gpu.tensor : gpu.float32();
}

}  // namespace kvjit::tool::sass

#include "inspect/sass/analysis.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "inspect/sass/code.h"
#include "inspect/sass/data_flow.h"
#include "inspect/sass/loops.h"
#include "inspect/sass/tile_loop.h"

namespace kvjit::tool::sass {
namespace {

/// What is found of loops takes time by the square of the blocks; kernels have some hundreds.
constexpr std::size_t kMostBlocks = 4096;

/// The blocks' instructions, once each.
template <class Blocks>
std::vector<Counted> once(const Code& code, const Blocks& blocks) {
    std::vector<Counted> counted;
    for (const int block : blocks) {
        for (const Instruction& each : code[static_cast<std::size_t>(block)].instructions)
            counted.push_back({&each, 1});
    }
    return counted;
}

std::vector<int> all_blocks(const Code& code) {
    std::vector<int> numbers(code.size());
    for (std::size_t number = 0; number < code.size(); ++number) numbers[number] = static_cast<int>(number);
    return numbers;
}

bool accesses_global(const Instruction& instruction) {
    constexpr std::string_view kAccesses[] = {"LDG", "STG", "LDGSTS", "LD", "ST"};
    return std::ranges::find(kAccesses, instruction.opcode) != std::end(kAccesses);
}

CodeFigures figures_of(std::span<const Counted> code) {
    CodeFigures figures;
    for (const auto& [instruction, times] : code) {
        figures.pipes[pipe_of(*instruction)] += times;
        figures.spills += is_local(*instruction) ? 1 : 0;
        if (accesses_global(*instruction))
            figures.access_bytes = std::max(figures.access_bytes, bytes_of_lane(*instruction));
        if (figures.product.empty()) figures.product = product_shape(*instruction);
    }
    return figures;
}

std::int64_t address_of_loop(const Code& code, const Loop& loop) {
    return code[static_cast<std::size_t>(loop.head)].instructions.front().address;
}

// ---- Attention ------------------------------------------------------------------------------------------------------

enum class GroupSync { kNone, kBegin, kLastWait };

GroupSync group_sync_of(const Instruction& each) {
    if (each.opcode != "WARPGROUP" || each.modifiers.empty()) return GroupSync::kNone;
    if (each.modifiers[0] == "ARRIVE") return GroupSync::kBegin;
    const bool is_last =
        each.modifiers[0] == "DEPBAR" && !each.operands.empty() && constant_of(each.operands.back()) == 0;
    return is_last ? GroupSync::kLastWait : GroupSync::kNone;
}

/// Instructions between the wait for all products of the warpgroup and the begin of the next ones, in a turn of a loop:
/// it begins as it ends.
std::int64_t issued_alone(std::span<const Counted> counted) {
    std::int64_t alone = 0;
    bool waited = false;
    for (int turn = 0; turn < 2; ++turn) {
        alone = 0;
        for (const auto& [instruction, times] : counted) {
            const GroupSync sync = group_sync_of(*instruction);
            if (sync == GroupSync::kBegin) waited = false;
            if (waited) alone += times;
            if (sync == GroupSync::kLastWait) waited = true;
        }
    }
    return alone;
}

TileFigures tile_figures(const Tile& tile, std::span<const Counted> counted) {
    std::int64_t shared_cycles = 0, group_products = 0;
    for (const auto& [instruction, times] : counted) {
        shared_cycles += wavefronts(*instruction) * times;
        group_products += group_columns(*instruction) / 8 * times;
    }
    const Loads loads = find_loads(counted);
    return {.keys = tile.keys,
            .rows = tile.rows,
            .shared_cycles = shared_cycles,
            .flight_bytes = bytes_in_flight(counted),
            .copies = loads.copies,
            .trips = loads.trips,
            .cache_bytes = tile.cache_bytes,
            .operations = tile.operations,
            .group_products = group_products,
            .alone = issued_alone(counted)};
}

Result<HotLoop> tile_loop(const Code& code, const Attention& attention, std::string_view listing) {
    const std::vector<Loop> loops = find_loops(code);
    const Product product = attention.uses_tensor() ? Product::kTensor : Product::kFloat;
    const Result<std::size_t> place = find_tile_loop(code, loops, product);
    if (!place) return fail(place.error());
    const Loop& loop = loops[*place];
    const int products = count(code, loop, [](const Instruction& each) { return is_product(Product::kTensor, each); });
    const Result<Tile> tile = tile_of(attention, products);
    if (!tile) return fail(tile.error());
    const Result<std::vector<Counted>> counted = count_tile(code, loops, *place, product, *tile);
    if (!counted) return fail(counted.error());
    return HotLoop{.address = address_of_loop(code, loop),
                   .code = figures_of(*counted),
                   .tile = tile_figures(*tile, *counted),
                   .lines = count_lines(*counted, lines_of(listing))};
}

// ---- Other programs -------------------------------------------------------------------------------------------------

/// Rather than only search, say for the sequence of a token.
bool does_work(const CodeFigures& loop, std::span<const Counted> code) {
    const bool stores = std::ranges::any_of(code, [](const Counted& each) {
        return moves_data(*each.instruction) && each.instruction->opcode.starts_with("ST");
    });
    return stores || loop.pipes[Pipe::kFloat] + loop.pipes[Pipe::kHalf] + loop.pipes[Pipe::kTensor] != 0;
}

bool is_innermost(const std::vector<Loop>& loops, std::size_t place) {
    return std::ranges::find(loops, static_cast<int>(place), &Loop::around) == loops.end();
}

Result<HotLoop> busiest_loop(const Code& code, std::string_view listing) {
    const std::vector<Loop> loops = find_loops(code);
    std::optional<HotLoop> found;
    int most = 0;
    for (std::size_t place = 0; place < loops.size(); ++place) {
        const int accesses = count(code, loops[place], accesses_global);
        if (accesses <= most || !is_innermost(loops, place)) continue;
        const std::vector<Counted> counted = once(code, loops[place].blocks);
        CodeFigures figures = figures_of(counted);
        if (!does_work(figures, counted)) continue;
        most = accesses;
        found = HotLoop{.address = address_of_loop(code, loops[place]),
                        .code = std::move(figures),
                        .tile = {},
                        .lines = count_lines(counted, lines_of(listing))};
    }
    return found ? Result<HotLoop>(*std::move(found)) : fail("no loop of the code stores or computes");
}

}  // namespace

Analysis analyse(std::string_view listing, const std::optional<Attention>& attention) {
    const Code code = read_code(listing);
    CodeFigures all = figures_of(once(code, all_blocks(code)));
    if (code.size() > kMostBlocks) {
        return {std::move(all), fail("the code has " + std::to_string(code.size()) +
                                     " blocks; loops are looked for in " + std::to_string(kMostBlocks))};
    }
    return {std::move(all), attention ? tile_loop(code, *attention, listing) : busiest_loop(code, listing)};
}

}  // namespace kvjit::tool::sass

#include "inspect/sass/report.h"

#include <cstdio>

#include "command/words.h"

namespace kvjit::tool::sass {
namespace {

std::string tile_text(const TileFigures& tile) {
    std::string text = "a warp's for a tile of " + std::to_string(tile.keys) + " keys and " +
                       number_of(tile.rows, "row") + "; " + number_of(tile.shared_cycles, "cycle") +
                       " of shared memory, " + number_of(tile.flight_bytes, "byte") + " in flight, ";
    if (tile.copies != 0) text += number_of(tile.copies, "copy") + " not in the background, ";
    return text + (tile.trips == 0 ? "no wait" : number_of(tile.trips, "wait")) + " for loads";
}

Json pipes_json(const PipeCounts& pipes) {
    Json json;
    for (std::size_t pipe = 0; pipe < kPipeNames.size(); ++pipe) json[std::string(kPipeNames[pipe])] = pipes.of[pipe];
    return json;
}

Json tile_json(const TileFigures& tile) {
    return {{"keys", tile.keys},
            {"rows", tile.rows},
            {"shared_cycles", tile.shared_cycles},
            {"flight_bytes", tile.flight_bytes},
            {"copies", tile.copies},
            {"trips", tile.trips},
            {"cache_bytes", tile.cache_bytes},
            {"operations", tile.operations},
            {"group_products", tile.group_products},
            {"alone", tile.alone}};
}

Json line_json(const LineCount& line) {
    Json opcodes;
    for (const auto& [opcode, times] : line.opcodes) opcodes[opcode] = times;
    return {{"line", line.line}, {"instructions", line.instructions}, {"opcodes", std::move(opcodes)}};
}

}  // namespace

std::string code_text(const CodeFigures& code) {
    std::string text = number_of(code.pipes.all(), "instruction");
    const char* separator = ": ";
    for (std::size_t pipe = 0; pipe < kPipeNames.size(); ++pipe) {
        if (code.pipes.of[pipe] == 0) continue;
        text += separator + std::to_string(code.pipes.of[pipe]) + " " + std::string(kPipeNames[pipe]);
        if (static_cast<Pipe>(pipe) == Pipe::kTensor && !code.product.empty()) text += " (" + code.product + ")";
        separator = ", ";
    }
    if (code.access_bytes == 0) return text;
    return text + "; " + std::to_string(code.access_bytes) + "-byte accesses";
}

std::string place_text(const HotLoop& loop) {
    return (loop.tile ? tile_text(*loop.tile) : "as they stand there") + "; at " + address_text(loop.address);
}

std::string shares_text(bool is_decode, const std::vector<GpuShare>& shares) {
    const char* const of = is_decode ? " of the memory's bandwidth" : " of the arithmetic";
    std::string text;
    for (const auto& [gpu, predicted] : shares) {
        char share[16];
        std::snprintf(share, sizeof share, "%.2f", predicted.share);
        text += (text.empty() ? "" : "; ") + std::string(gpu) + " " + share + of + ", bound by " +
                std::string(predicted.bound);
    }
    return text;
}

Json code_json(const CodeFigures& code) {
    return {{"instructions", code.pipes.all()},
            {"pipes", pipes_json(code.pipes)},
            {"product", code.product.empty() ? Json() : Json(code.product)},
            {"access_bytes", code.access_bytes},
            {"spills", code.spills}};
}

Json loop_json(const HotLoop& loop) {
    Json json = code_json(loop.code);
    json["address"] = loop.address;
    if (loop.tile) json["tile"] = tile_json(*loop.tile);
    for (const LineCount& line : loop.lines) json["lines"].push_back(line_json(line));
    return json;
}

Json shares_json(const std::vector<GpuShare>& shares) {
    Json json = Json::array();
    for (const auto& [gpu, predicted] : shares) {
        json.push_back({{"gpu", gpu}, {"share", predicted.share}, {"bound", predicted.bound}});
    }
    return json;
}

}  // namespace kvjit::tool::sass

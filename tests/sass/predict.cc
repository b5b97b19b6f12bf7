// What the model predicts of recorded figures. From standard input: JSON, a list of programs with what the model takes
// of each. To standard output: the GPUs by their numbers, and for each program its shares on those of its architecture,
// and of what these are.
#include <iostream>
#include <string>
#include <utility>

#include "inspect/sass/gpus.h"
#include "inspect/sass/model.h"
#include "json.h"

namespace kvjit::tool::sass {
namespace {

PipeCounts pipes_of(const Json& json) {
    PipeCounts pipes;
    for (std::size_t pipe = 0; pipe < kPipeNames.size(); ++pipe) json.at(kPipeNames[pipe]).get_to(pipes.of[pipe]);
    return pipes;
}

Modelled modelled_of(const Json& json) {
    const Json& tile = json.at("tile");
    return {.is_decode = json.at("program") == "decode",
            .warps = json.at("warps"),
            .pipes = pipes_of(json.at("pipes")),
            .tile = {.keys = tile.at("keys"),
                     .rows = tile.at("rows"),
                     .shared_cycles = tile.at("shared_cycles"),
                     .flight_bytes = tile.at("flight_bytes"),
                     .copies = tile.at("copies"),
                     .trips = tile.at("trips"),
                     .cache_bytes = tile.at("cache_bytes"),
                     .operations = tile.at("operations"),
                     .group_products = tile.at("group_products"),
                     .alone = tile.at("alone")}};
}

Json json_of(const Gpu& gpu) {
    return {{"name", gpu.name},
            {"architecture", gpu.architecture},
            {"multiprocessors", gpu.multiprocessors},
            {"clock", gpu.clock},
            {"bandwidth", gpu.bandwidth},
            {"tensor", gpu.tensor},
            {"product_cycles", gpu.product_cycles},
            {"float_cycles", gpu.float_cycles}};
}

Json json_of(const Modelled& program, const Gpu& gpu) {
    const Prediction predicted = predict(program, gpu);
    return {{"gpu", gpu.name},
            {"share", predicted.share},
            {"bound", predicted.bound},
            {"published", published_rate(program, gpu)}};
}

Json answer(const Json& programs) {
    Json told = {{"gpus", Json::array()}, {"shares", Json::array()}};
    for (const Gpu& gpu : gpus()) told["gpus"].push_back(json_of(gpu));
    for (const Json& program : programs) {
        const Modelled modelled = modelled_of(program);
        Json shares = Json::array();
        for (const Gpu& gpu : gpus_of(program.at("architecture"))) shares.push_back(json_of(modelled, gpu));
        told["shares"].push_back(std::move(shares));
    }
    return told;
}

}  // namespace
}  // namespace kvjit::tool::sass

int main() {
    try {
        std::cout << kvjit::tool::dump(kvjit::tool::sass::answer(kvjit::tool::Json::parse(std::cin)));
        return 0;
    } catch (const nlohmann::json::exception& error) {
        std::cerr << "sass_predict: " << error.what() << "\n";
        return 2;
    }
}

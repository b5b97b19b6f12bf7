// Figures of machine code as text, and as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "inspect/sass/figures.h"
#include "inspect/sass/model.h"
#include "json.h"

namespace kvjit::tool::sass {

/// A GPU, and what the model predicts on it.
struct GpuShare {
    std::string_view gpu;
    Prediction predicted;
};

/// "447 instructions: 32 tensor (m16n8k16), 38 float, ...; global accesses of 16 bytes"
std::string code_text(const CodeFigures& code);
/// Where the loop is, and a tile's further figures.
std::string place_text(const HotLoop& loop);
/// "H100: 0.90 of the memory's bandwidth, bound by memory; H200: ..."
std::string shares_text(bool is_decode, const std::vector<GpuShare>& shares);

Json code_json(const CodeFigures& code);
Json loop_json(const HotLoop& loop);
Json shares_json(const std::vector<GpuShare>& shares);

}  // namespace kvjit::tool::sass

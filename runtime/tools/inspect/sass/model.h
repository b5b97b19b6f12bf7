// A model of time: what share of a GPU's memory bandwidth, or of its arithmetic, a program of attention may reach, and
// what bounds it. docs/gpu_model.md has the formula and what it assumes. Nothing in it was measured on a GPU.
#pragma once

#include <string_view>

#include "inspect/sass/figures.h"
#include "inspect/sass/gpus.h"

namespace kvjit::tool::sass {

/// What the model makes shares of.
struct Modelled {
    bool is_decode;  // else prefill
    int warps;       // that a multiprocessor runs at once
    PipeCounts pipes;
    TileFigures tile;
};

struct Prediction {
    double share;            // of the memory's bandwidth for decode, of the arithmetic's peak for prefill
    std::string_view bound;  // "issue", "tensor", "float", "shared", "waits", "memory" or "flight"
};

Prediction predict(const Modelled& program, const Gpu& gpu);
/// What it is a share of: bytes a second for decode, operations a second for prefill.
double published_rate(const Modelled& program, const Gpu& gpu);

}  // namespace kvjit::tool::sass

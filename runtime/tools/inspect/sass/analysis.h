// From a listing to figures.
#pragma once

#include <optional>
#include <string_view>

#include "inspect/sass/figures.h"
#include "inspect/sass/tile.h"
#include "result.h"

namespace kvjit::tool::sass {

struct Analysis {
    CodeFigures code;  // of all of it, as it stands there
    /// Of attention the loop over tiles (tile_loop.h); of others the innermost loop that stores or computes and has
    /// most accesses to global memory. Errors: there is none, or the code is not such as these rules know.
    Result<HotLoop> hot;
};

/// `listing`: what nvdisasm prints of a program's code, with lines or without. `attention`: of programs of attention.
Analysis analyse(std::string_view listing, const std::optional<Attention>& attention);

}  // namespace kvjit::tool::sass

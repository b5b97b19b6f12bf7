// Specs and their programs from text.
#pragma once

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include "generator/program.h"

namespace kvjit::gen {

inline KernelSpec spec_of(std::string_view text) {
    const Result<KernelSpec> spec = parse_spec(text);
    REQUIRE_MESSAGE(spec.has_value(), spec.error().message);
    return *spec;
}

inline std::vector<Program> lowered(std::string_view spec, const Target& target) {
    Result<std::vector<Program>> programs = lower(spec_of(spec), target);
    REQUIRE_MESSAGE(programs.has_value(), programs.error().message);
    return *std::move(programs);
}

}  // namespace kvjit::gen

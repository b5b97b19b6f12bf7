// The levels that the templates are tested at, and which of them this machine runs.
#pragma once

#include <string_view>
#include <vector>

#include "primitives.h"

extern "C" {
extern const kvjit::test::Primitives primitives_v1, primitives_v2, primitives_v3, primitives_v4;
}

namespace kvjit::test {

inline bool runs_level(std::string_view level) {
    if (level == "v2") return __builtin_cpu_supports("x86-64-v2");
    if (level == "v3") return __builtin_cpu_supports("x86-64-v3");
    if (level == "v4") return __builtin_cpu_supports("x86-64-v4");
    return level == "v1";
}

inline std::vector<const Primitives*> runnable_levels() {
    std::vector<const Primitives*> levels;
    for (const Primitives* level : {&primitives_v1, &primitives_v2, &primitives_v3, &primitives_v4})
        if (runs_level(level->level)) levels.push_back(level);
    return levels;
}

}  // namespace kvjit::test

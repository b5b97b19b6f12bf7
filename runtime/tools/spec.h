// `kvjit spec list`: the names that fields of a spec take.
#pragma once

namespace kvjit::tool {

struct SpecListOptions {
    bool names = false;  // names alone, a line each, for scripts
};

/// Prints each layout that has a name: name, order of axes, the other fields that it sets, its users. Exit status 0.
int list_layouts(const SpecListOptions& options);

}  // namespace kvjit::tool

// `kvjit spec list`: the names that fields of a spec take.
#pragma once

namespace kvjit::tool {

struct SpecListOptions {
    bool names = false;  // names alone, a line each, for scripts
};

/// Prints the layouts that have a name: name, order of axes, the fields that it sets besides, whose it is. Exit status
/// 0.
int list_layouts(const SpecListOptions& options);

}  // namespace kvjit::tool

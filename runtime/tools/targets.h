// `kvjit targets`: the names that --target takes.
#pragma once

namespace kvjit::tool {

struct TargetsOptions {
    bool names = false;  // names alone, a line each, for scripts
};

/// Prints the names. Exit status 0.
int targets(const TargetsOptions& options);

}  // namespace kvjit::tool

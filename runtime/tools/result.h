// The tool's errors are values too: one sentence that says what and where.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace kvjit::tool {

template <class T>
using Result = std::expected<T, std::string>;

/// Exit statuses of every command.
enum ExitCode {
    kExitOk = 0,
    kExitMismatch = 1,  // everything ran, and a result was wrong
    kExitBadInput = 2   // a file, an argument, a target or the output can't be used
};

[[nodiscard]] inline std::unexpected<std::string> fail(std::string message) {
    return std::unexpected(std::move(message));
}

}  // namespace kvjit::tool

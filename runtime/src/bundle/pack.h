// Compresses texts (zstd) that people read and nothing executes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kvjit::rt {

/// "" for "". Deterministic.
std::string pack(std::string_view text);

/// nullopt if `packed` is no text of `bytes` bytes. Never writes more than that, whatever the input.
std::optional<std::string> unpack(std::string_view packed, std::size_t bytes);

}  // namespace kvjit::rt

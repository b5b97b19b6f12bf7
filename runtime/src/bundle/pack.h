// Texts made small (zstd): what is read by people, never what is executed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kvjit::rt {

/// "" for "". The same text always becomes the same bytes.
std::string pack(std::string_view text);

/// Nothing where `packed` is no text of `bytes` bytes. Never writes more than so many, whatever is given.
std::optional<std::string> unpack(std::string_view packed, std::size_t bytes);

}  // namespace kvjit::rt

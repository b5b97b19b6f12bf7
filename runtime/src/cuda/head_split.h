// Chooses how many of a token's kv heads a warp of store and load takes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "check/arithmetic.h"
#include "common/abi.h"

namespace kvjit::rt {

/// The most that any GPU runs at once.
inline constexpr std::int64_t kWarpsOfMultiprocessor = 64;

/// To find a token's slot takes a warp more instructions than to move a head's rows, so with several heads a warp needs
/// fewer. But each waits for a row before it stores it, so that memory is busy only while many warps wait. Hence a warp
/// takes as many heads as leave each multiprocessor all the warps that it runs at once: one head in small calls, which
/// take as long as one warp.
///   tokens  that the call's tensors have room for; of each, keys and values have the split's warps
constexpr abi::HeadSplit split_heads(std::int64_t tokens, std::int64_t heads, std::int64_t multiprocessors) {
    const std::int64_t wanted = saturating_product(multiprocessors, kWarpsOfMultiprocessor),
                       of_each = saturating_product(std::max<std::int64_t>(1, tokens), std::int64_t{2});
    const std::int64_t most = std::max<std::int64_t>(1, heads / ceil_div(wanted, of_each));
    const std::int64_t warps = std::max<std::int64_t>(1, ceil_div(heads, most));
    return {warps, ceil_div(heads, warps)};
}

}  // namespace kvjit::rt

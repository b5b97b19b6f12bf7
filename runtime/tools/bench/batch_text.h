// Batches as `kvjit bench --batch` has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "result.h"

namespace kvjit::tool {

/// Sequence b brings tokens[b] new tokens, the last of its keys[b] keys.
struct Lengths {
    std::vector<std::int64_t> tokens, keys;

    std::int64_t new_tokens() const;
};

/// "8x1:4096+512:512": eight sequences of one new token and 4096 keys, and one of 512 new tokens and no others. Errors:
/// a sentence that names the part and what it takes.
Result<Lengths> parse_batch(std::string_view text);

/// What is measured where no batch is named: one long sequence that decodes, several shorter ones, a prompt, and a
/// prompt amid sequences that decode.
inline const std::vector<std::string> kUsualBatches = {"1x1:32768", "16x1:2048", "1x512:512", "16x1:2048+1x512:512"};

}  // namespace kvjit::tool

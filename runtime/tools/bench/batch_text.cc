#include "bench/batch_text.h"

#include <charconv>
#include <numeric>
#include <optional>

#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr std::int64_t kMostSequences = 1 << 16, kMostKeys = 1 << 24;

std::optional<std::int64_t> number_in(std::string_view text, std::int64_t least, std::int64_t most) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) return {};
    return number;
}

struct Group {
    std::int64_t sequences, tokens, keys;
};

std::optional<Group> parse_group(std::string_view text) {
    const std::size_t times = text.find('x'), colon = text.find(':');
    if (colon == std::string_view::npos) return {};
    const bool counted = times < colon;
    const auto sequences =
        counted ? number_in(text.substr(0, times), 1, kMostSequences) : std::optional(std::int64_t{1});
    const std::size_t first = counted ? times + 1 : 0;
    const auto tokens = number_in(text.substr(first, colon - first), 1, kMostKeys);
    const auto keys = number_in(text.substr(colon + 1), 1, kMostKeys);
    if (!sequences || !tokens || !keys || *tokens > *keys) return {};
    return Group{*sequences, *tokens, *keys};
}

}  // namespace

std::int64_t Lengths::new_tokens() const {
    return std::reduce(tokens.begin(), tokens.end());
}

Result<Lengths> parse_batch(std::string_view text) {
    Lengths lengths;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::string_view word = text.substr(begin, text.find('+', begin) - begin);
        begin += word.size() + 1;
        const std::optional<Group> group = parse_group(word);
        if (!group) {
            return fail("--batch has " + in_quotes(word) + "; it takes SEQUENCESxTOKENS:KEYS, as 8x1:4096 for eight " +
                        "sequences of 1 new token and 4096 keys with it, up to " + std::to_string(kMostKeys) +
                        " keys; + joins such groups");
        }
        const auto count = lengths.tokens.size() + static_cast<std::size_t>(group->sequences);
        if (count > kMostSequences) {
            return fail("--batch " + in_quotes(text) + " has " + std::to_string(count) + " sequences; it takes up to " +
                        std::to_string(kMostSequences));
        }
        lengths.tokens.resize(count, group->tokens);
        lengths.keys.resize(count, group->keys);
    }
    return lengths;
}

}  // namespace kvjit::tool

#include "bench/batch_text.h"

#include <charconv>
#include <numeric>

#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr std::int64_t kMostSequences = 1 << 16, kMostKeys = 1 << 24;

/// Of a group, by its name in messages.
Result<std::int64_t> number_in(std::string_view text, const char* name, std::int64_t most) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && number >= 1 && number <= most) return number;
    return fail(std::string(name) + " is " + in_quotes(text) + ", not an integer from 1 to " + std::to_string(most));
}

struct Group {
    std::int64_t sequences, tokens, keys;
};

/// Errors: the rule that the text breaks, as a clause.
Result<Group> parse_group(std::string_view text) {
    const std::size_t times = text.find('x'), colon = text.find(':');
    if (colon == std::string_view::npos) return fail("there is no colon before KEYS");
    const bool counted = times < colon;
    const std::size_t first = counted ? times + 1 : 0;
    const auto sequences = number_in(counted ? text.substr(0, times) : "1", "SEQUENCES", kMostSequences);
    if (!sequences) return fail(sequences.error());
    const auto tokens = number_in(text.substr(first, colon - first), "TOKENS", kMostKeys);
    if (!tokens) return fail(tokens.error());
    const auto keys = number_in(text.substr(colon + 1), "KEYS", kMostKeys);
    if (!keys) return fail(keys.error());
    if (*tokens <= *keys) return Group{*sequences, *tokens, *keys};
    return fail("TOKENS is " + std::to_string(*tokens) + " and KEYS " + std::to_string(*keys) +
                ", but new tokens are among the keys");
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
        const Result<Group> group = parse_group(word);
        if (!group) {
            return fail("--batch has " + in_quotes(word) + ": " + group.error() +
                        "; it takes SEQUENCESxTOKENS:KEYS, as 8x1:4096 for eight sequences of 1 new token and 4096 "
                        "keys with it; + joins such groups");
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

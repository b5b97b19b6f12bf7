#include "generator/nearest.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>
#include <vector>

namespace kvjit::gen {
namespace {

constexpr std::size_t kShortestPart = 3;  // fewer letters are part of too many words
constexpr std::size_t kLongest = 64;      // letters; what is longer was meant to be something else

/// Lower-case, without what only separates.
std::string plain(std::string_view word) {
    std::string letters;
    for (const char c : word) {
        if (c != '_' && c != '-') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return letters;
}

/// Differing letters that a misspelt word of this length may have.
std::size_t tolerance(std::size_t letters) {
    return letters < 3 ? 0 : letters < 6 ? 1 : letters / 3;
}

/// The only word that has `part` in it; "": there is none, or there are several.
std::string_view only_with(const std::string& part, std::span<const std::string_view> words) {
    std::string_view found;
    for (const std::string_view word : words) {
        if (!plain(word).contains(part)) continue;
        if (!found.empty()) return "";
        found = word;
    }
    return found;
}

}  // namespace

std::size_t edit_distance(std::string_view one, std::string_view other) {
    // row[j] is for the letters of `one` so far and the first j of `other`; before is the row for one letter less.
    std::vector<std::size_t> row(other.size() + 1), last, before;
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= one.size(); ++i) {
        before = std::exchange(last, row);
        row[0] = i;
        for (std::size_t j = 1; j <= other.size(); ++j) {
            const std::size_t replaced = last[j - 1] + (one[i - 1] != other[j - 1]);
            row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
            const bool swapped = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
            if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
        }
    }
    return row.back();
}

std::string_view nearest_word(std::string_view given, std::span<const std::string_view> words) {
    return std::ranges::min(words, {}, [&](std::string_view word) { return edit_distance(given, word); });
}

std::string_view meant_word(std::string_view given, std::span<const std::string_view> words) {
    const std::string letters = plain(given);
    if (words.empty() || letters.empty() || letters.size() > kLongest) return "";
    const auto distance = [&](std::string_view word) { return edit_distance(letters, plain(word)); };
    const std::string_view nearest = std::ranges::min(words, {}, distance);
    if (distance(nearest) == 0) return nearest;
    if (letters.size() >= kShortestPart) {
        if (const std::string_view whole = only_with(letters, words); !whole.empty()) return whole;
    }
    return distance(nearest) <= tolerance(letters.size()) ? nearest : "";
}

std::string did_you_mean(std::string_view given, std::span<const std::string_view> words) {
    return did_you_mean(meant_word(given, words));
}

std::string did_you_mean(std::string_view meant) {
    return meant.empty() ? "" : "; did you mean " + std::string(meant) + "?";
}

}  // namespace kvjit::gen

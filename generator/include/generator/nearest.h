// What a misspelt word was probably meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kvjit::gen {

/// Letters to insert, remove or replace, or neighbours to swap, to make one word the other.
std::size_t edit_distance(std::string_view one, std::string_view other);

/// The word at the least such distance; the first of several. Precondition: there is a word.
std::string_view nearest_word(std::string_view given, std::span<const std::string_view> words);

/// The word that `given` was probably meant to be: the only one that has it as a part, or the nearest one if few
/// letters differ. Case, '_' and '-' don't count. "": none is likely.
std::string_view meant_word(std::string_view given, std::span<const std::string_view> words);

/// "; did you mean page_table?", or "" where no word is likely.
std::string did_you_mean(std::string_view given, std::span<const std::string_view> words);
/// The same of a word that was found.
std::string did_you_mean(std::string_view meant);

}  // namespace kvjit::gen

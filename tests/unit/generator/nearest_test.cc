// Words that were probably meant.
#include "generator/nearest.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace kvjit::gen {
namespace {

const std::vector<std::string_view> kWords = {"head_dim", "page_table", "block_table", "is_causal",
                                              "f16",      "f32",        "Merge"};

TEST_CASE("distance counts letters inserted, removed, replaced, and neighbours swapped") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("abc", "") == 3);
    CHECK(edit_distance("abc", "abd") == 1);
    CHECK(edit_distance("abc", "acb") == 1);
    CHECK(edit_distance("kitten", "sitting") == 3);
    CHECK(edit_distance("sitting", "kitten") == 3);
}

TEST_CASE("the nearest word is always one") {
    CHECK(nearest_word("zzz", kWords) == "f16");
    CHECK(nearest_word("page_tabel", kWords) == "page_table");
}

TEST_CASE("a word is meant where few letters differ, or where it alone has the given one in it") {
    CHECK(meant_word("Head-Dim", kWords) == "head_dim");
    CHECK(meant_word("merge", kWords) == "Merge");
    CHECK(meant_word("hed_dim", kWords) == "head_dim");
    CHECK(meant_word("causal", kWords) == "is_causal");
    CHECK(meant_word("block", kWords) == "block_table");
}

TEST_CASE("no word is meant where several or none are likely") {
    CHECK(meant_word("", kWords) == "");
    CHECK(meant_word("colour", kWords) == "");
    CHECK(meant_word("table", kWords) == "");
    CHECK(meant_word("f", kWords) == "");
    CHECK(meant_word(std::string(1'000'000, 'x'), kWords) == "");
    CHECK(meant_word("head_dim", {}) == "");
}

TEST_CASE("did_you_mean says nothing without a word") {
    CHECK(did_you_mean("merg", kWords) == "; did you mean Merge?");
    CHECK(did_you_mean("colour", kWords) == "");
}

}  // namespace
}  // namespace kvjit::gen

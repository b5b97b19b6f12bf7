// Result: what success weighs, what failure carries, what value() throws.
#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kvjit/kvjit.hpp"

namespace {

// Success pays for no Error: not in memory, and so not in what a run writes.
static_assert(sizeof(kvjit::Result<void>) == sizeof(void*));
static_assert(sizeof(kvjit::Result<kvjit::Plan>) <= 2 * sizeof(void*));
static_assert(std::is_nothrow_copy_constructible_v<kvjit::Exception>);

kvjit::Error bad_shape() {
    return {KVJIT_BAD_SHAPE, "query.shape[1]", "query.shape[1] is 9; it takes 8", 9, 8};
}

kvjit::Result<std::unique_ptr<int>> number(bool fails) {
    if (fails) return bad_shape();
    return std::make_unique<int>(7);
}

template <class Call>
void check_throws_bad_shape(Call call) {
    try {
        call();
        FAIL("nothing was thrown");
    } catch (const std::runtime_error& thrown) {
        CHECK(thrown.what() == std::string("query.shape[1] is 9; it takes 8"));
        const auto* exception = dynamic_cast<const kvjit::Exception*>(&thrown);
        REQUIRE(exception != nullptr);
        CHECK(exception->status() == KVJIT_BAD_SHAPE);
        CHECK(exception->error().argument() == std::string("query.shape[1]"));
        CHECK(exception->error().value() == 9);
        CHECK(exception->error().limit() == 8);
        CHECK(exception->error().sequence() == -1);
    }
}

}  // namespace

TEST_CASE("value() gives the value, to change and to take away") {
    auto result = number(false);
    CHECK(*result.value() == 7);
    *result.value() = 8;
    CHECK(*std::as_const(result).value() == 8);
    const std::unique_ptr<int> taken = std::move(result).value();
    CHECK(*taken == 8);
    kvjit::Result<void>().value();
}

// A loop over what a call gives: the Result is gone when it begins, its value isn't.
static_assert(std::is_same_v<decltype(*number(false)), std::unique_ptr<int>>);
static_assert(std::is_same_v<decltype(number(false).value()), std::unique_ptr<int>>);
static_assert(std::is_same_v<decltype(*std::declval<kvjit::Result<std::string>&>()), std::string&>);

TEST_CASE("the value of a Result that has ended lives where it is bound") {
    const auto words = [] {
        return kvjit::Result<std::vector<std::string>>({"one word", "and another one, of more letters"});
    };
    std::string all;
    for (const std::string& word : *words()) all += word + '.';
    for (const std::string& word : words().value()) all += word + '.';
    CHECK(all == "one word.and another one, of more letters.one word.and another one, of more letters.");
}

TEST_CASE("value() of a failure throws what was refused") {
    const kvjit::Result<void> failed = bad_shape();
    check_throws_bad_shape([&] { failed.value(); });
    auto none = number(true);
    check_throws_bad_shape([&] { none.value(); });
    check_throws_bad_shape([&] { std::as_const(none).value(); });
    check_throws_bad_shape([&] { std::move(none).value(); });
    check_throws_bad_shape([] { static_cast<void>(number(true).value()); });
}

TEST_CASE("an exception outlives the result that it is of") {
    std::unique_ptr<kvjit::Exception> kept;
    try {
        number(true).value();
    } catch (const kvjit::Exception& exception) {
        kept = std::make_unique<kvjit::Exception>(exception);
    }
    REQUIRE(kept != nullptr);
    CHECK(kept->error().message() == std::string("query.shape[1] is 9; it takes 8"));
}

TEST_CASE("a failure stays one, copied, assigned or moved from") {
    kvjit::Result<void> failed = bad_shape();
    const std::vector<kvjit::Result<void>> copies(3, failed);
    const kvjit::Result<void> moved = std::move(failed);
    CHECK(!failed);  // NOLINT(bugprone-use-after-move): that is the point
    failed = kvjit::Result<void>();
    CHECK(failed.has_value());
    for (const kvjit::Result<void>& copy : {copies[0], copies[2], moved}) {
        REQUIRE(!copy);
        CHECK(copy.error().value() == 9);
    }
    failed = moved;
    failed = *&failed;
    REQUIRE(!failed);
    CHECK(failed.error().limit() == 8);
    auto none = number(true);
    const auto taken = std::move(none);
    REQUIRE(!none);  // NOLINT(bugprone-use-after-move)
    CHECK(none.error().value() == taken.error().value());
}

TEST_CASE("an error of a caller's own has its texts cut where they don't fit") {
    const std::string text(5000, 'x');
    const kvjit::Error error(KVJIT_INTERNAL, text.c_str(), text.c_str());
    CHECK(std::string(error.argument()).size() == sizeof(kvjit_error::argument) - 1);
    CHECK(std::string(error.message()).size() == sizeof(kvjit_error::message) - 1);
    CHECK(error.value() == 0);
}

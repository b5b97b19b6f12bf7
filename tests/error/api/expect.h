// What a refusal has to say.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "generator/error.h"

namespace kvjit::test {

struct Refusal {
    kvjit_status status;
    std::string_view argument;
    std::int64_t value = 0;
    std::int64_t limit = 0;
    std::int64_t sequence = -1;
    bool address = false;  // which the value is: messages have it in hexadecimal digits
};

/// A refusal with one status: `bad_index("kvstarts", 9, 10, 1)`.
struct RefusalOf {
    kvjit_status status;

    constexpr Refusal operator()(std::string_view argument, std::int64_t value = 0, std::int64_t limit = 0,
                                 std::int64_t sequence = -1, bool address = false) const {
        return {status, argument, value, limit, sequence, address};
    }
};
inline constexpr RefusalOf bad_spec{KVJIT_BAD_SPEC}, bad_argument{KVJIT_BAD_ARGUMENT}, bad_dtype{KVJIT_BAD_DTYPE},
    bad_shape{KVJIT_BAD_SHAPE}, bad_index{KVJIT_BAD_INDEX};

inline std::string address_digits(std::int64_t address) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "0x%llx", static_cast<unsigned long long>(address));
    return digits;
}

/// The members, and that the message repeats them.
inline void expect_refused(const gen::Result<void>& result, const Refusal& want) {
    REQUIRE_FALSE(result.has_value());
    const gen::Error& error = result.error();
    INFO(error.message);
    CHECK(error.status == want.status);
    CHECK(error.argument == want.argument);
    CHECK(error.value == want.value);
    CHECK(error.limit == want.limit);
    CHECK(error.sequence == want.sequence);
    const auto says = [&](std::string_view part) { return error.message.find(part) != std::string::npos; };
    CHECK(says(want.argument.substr(0, want.argument.find('['))));
    const std::string value = want.address ? address_digits(want.value) : std::to_string(want.value);
    CHECK((want.value == 0 || want.status == KVJIT_BAD_DTYPE || says(value)));
    CHECK((want.limit == 0 || want.status == KVJIT_BAD_DTYPE || says(std::to_string(want.limit))));
    CHECK((want.sequence < 0 || says("sequence")));
    CHECK((want.sequence < 0 || says(std::to_string(want.sequence))));
}

inline void expect_accepted(const gen::Result<void>& result) {
    INFO((result ? std::string() : result.error().message));
    CHECK(result.has_value());
}

}  // namespace kvjit::test

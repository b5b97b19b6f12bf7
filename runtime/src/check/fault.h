// Uniform errors of the checks: "<where> is <value>; <rule> (sequence b)".
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "generator/error.h"
#include "generator/spec.h"

namespace kvjit::rt {

/// Joins texts and numbers into one string.
template <class... Parts>
std::string text(const Parts&... parts) {
    std::string joined;
    const auto append = [&joined](const auto& part) {
        using Part = std::remove_cvref_t<decltype(part)>;
        if constexpr (std::is_floating_point_v<Part>) {
            char digits[32];
            joined.append(digits, std::to_chars(std::begin(digits), std::end(digits), part).ptr);
        } else if constexpr (std::is_arithmetic_v<Part>) {
            joined += std::to_string(part);
        } else {
            joined += part;
        }
    };
    (append(parts), ...);
    return joined;
}

/// An address as messages print it.
inline std::string address_text(std::int64_t address) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "%#llx", static_cast<unsigned long long>(address));
    return digits;
}

/// The operator's name, such as "KeyValueCache".
inline std::string op_name(const gen::KernelSpec& spec) {
    return gen::spec_fields().front().print(spec);
}

/// The error that `argument` is `value`, which breaks `rule` (a clause that states the limit).
[[nodiscard]] inline std::unexpected<gen::Error> refuse(kvjit_status status, std::string argument, std::int64_t value,
                                                        std::int64_t limit, std::string_view rule) {
    std::string message = text(argument, " is ", value, "; ", rule);
    return gen::fail(status, std::move(argument), std::move(message), value, limit);
}

/// Refuses a number that isn't one of `least` to `most`.
[[nodiscard]] inline gen::Result<void> check_range(std::string_view name, std::int64_t value, std::int64_t least,
                                                   std::int64_t most) {
    if (value >= least && value <= most) return {};
    const std::int64_t limit = value < least ? least : most;
    return refuse(KVJIT_BAD_ARGUMENT, std::string(name), value, limit,
                  text("it takes ", value < least ? "at least " : "at most ", limit));
}

/// The same for a fraction, which only the message contains.
[[nodiscard]] inline std::unexpected<gen::Error> refuse(kvjit_status status, std::string argument,
                                                        std::same_as<float> auto value, std::same_as<float> auto,
                                                        std::string_view rule) {
    std::string message = text(argument, " is ", value, "; ", rule);
    return gen::fail(status, std::move(argument), std::move(message));
}

/// Ends a rule that binds only plans that may store.
inline constexpr std::string_view kIfStored = ", unless options.stores_nothing is 1";

/// Ends a sentence about an array's contents: the check levels that find the fault.
inline constexpr std::string_view kAtCheckBatch = " [found by KVJIT_CHECK_BATCH and up]";
inline constexpr std::string_view kAtCheckFull = " [found by KVJIT_CHECK_FULL]";

/// Bytes past the last multiple of `bytes`, a power of two; 0 for a null pointer.
inline std::int64_t misalignment(const void* pointer, std::int64_t bytes) {
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(pointer) &
                                     static_cast<std::uintptr_t>(bytes - 1));
}

[[nodiscard]] inline std::unexpected<gen::Error> refuse_misaligned(std::string argument, std::int64_t past,
                                                                   std::int64_t bytes) {
    std::string message = text(argument, " is misaligned: ", past, " bytes past a multiple of ", bytes);
    return gen::fail(KVJIT_BAD_ARGUMENT, std::move(argument), std::move(message), past, bytes);
}

}  // namespace kvjit::rt

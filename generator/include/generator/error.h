// Errors as values: the argument, its value, the limit. Callers receive them as kvjit_error (kvjit.h).
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

#include "kvjit/kvjit.h"

namespace kvjit::gen {

struct Error {
    kvjit_status status = KVJIT_INTERNAL;
    std::string message;   // a whole sentence that repeats the members below
    std::string argument;  // "seqstarts", "cache.shape[1]", "quant_bit"
    std::int64_t value = 0;
    std::int64_t limit = 0;
    std::int64_t sequence = -1;
};

template <class T>
using Result = std::expected<T, Error>;

/// `return fail(KVJIT_BAD_SPEC, "head_dim", "head_dim is 12; it takes a multiple of 8 from 8 to 512", 12, 8);`
[[nodiscard]] inline std::unexpected<Error> fail(kvjit_status status, std::string argument, std::string message,
                                                 std::int64_t value = 0, std::int64_t limit = 0,
                                                 std::int64_t sequence = -1) {
    return std::unexpected(Error{status, std::move(message), std::move(argument), value, limit, sequence});
}

}  // namespace kvjit::gen

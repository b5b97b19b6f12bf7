// The two sides of a relayout, checked: which tokens of which cache go where.
#pragma once

#include <cstdint>
#include <string_view>

#include "batch/batch_view.h"
#include "check/check_batch.h"
#include "generator/error.h"
#include "kvjit/kvjit.h"

namespace kvjit::rt {

/// The caller's structs, all in this version's sizes.
struct RelayoutRequest {
    kvjit_relayout relayout;
    kvjit_batch from, to;
};

/// One side. Its batch's arrays are the caller's.
struct RelayoutSideView {
    BatchView batch;
    std::int64_t ranks, rank;  // positions j take part where j % ranks == rank
    std::int64_t head;         // the first to copy

    /// The tokens of sequence b to copy: their first position, and their number.
    struct Tokens {
        std::int64_t first, count;
    };
    Tokens tokens(std::int64_t b) const;
};

struct RelayoutView {
    RelayoutSideView from, to;
    std::int64_t num_kv_heads;
    std::int64_t num_layers;  // of one run
};

/// The prefixes of the sides' arguments.
inline constexpr std::string_view kFromSide = "from.", kToSide = "to.";
/// The error with the prefix before its argument, also in a message that begins with the argument, and without advice
/// that only other plans can follow.
gen::Error error_of_side(std::string_view side, gen::Error error);

/// `spec`: of op Relayout, validated. `alignment`: see BatchUse. O(B + pages + tokens log tokens of `to`). Errors:
/// KVJIT_BAD_ARGUMENT, KVJIT_BAD_DTYPE, KVJIT_BAD_SHAPE, KVJIT_BAD_INDEX; arguments begin with their side.
gen::Result<RelayoutView> check_relayout(const gen::KernelSpec& spec, const RelayoutRequest& request,
                                         kvjit_check_level level, std::int64_t alignment);

}  // namespace kvjit::rt

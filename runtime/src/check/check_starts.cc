#include "check/batch_parts.h"

namespace kvjit::rt {

using gen::Result;

Result<void> check_totals(const BatchArrays& arrays) {
    const CheckedSequence last = checked_sequence(arrays.batch, arrays.batch.batch_size - 1);
    Finding found;
    if (totals_hold(found, arrays.batch, arrays.paging, last)) return {};
    return std::unexpected(rule_error(found, arrays.words));
}

Result<void> check_starts(const BatchArrays& arrays) {
    Result<void> tokens = check_sequences(arrays, [&](Finding& found, std::int64_t b) {
        return tokens_hold(found, arrays.batch, checked_sequence(arrays.batch, b));
    });
    if (!tokens || !has_keys(arrays.batch.keys)) return tokens;
    return check_sequences(arrays, [&](Finding& found, std::int64_t b) {
        return keys_hold(found, arrays.batch, checked_sequence(arrays.batch, b));
    });
}

Result<void> check_new_positions(const BatchArrays& arrays) {
    return check_sequences(arrays, [&](Finding& found, std::int64_t b) {
        return position_holds(found, arrays.batch, checked_sequence(arrays.batch, b));
    });
}

}  // namespace kvjit::rt

// One misuse of a batch: a legal case, what spoils it, and the refusal that must follow.
#pragma once

#include <span>

#include "batch_case.h"
#include "check/check_batch.h"
#include "expect.h"

namespace kvjit::test {

struct BatchMisuse {
    std::string_view name;
    std::string_view spec;
    void (*spoil)(BatchCase&);
    Refusal want;
    bool of_stores = false;  // accepted where the plan stores nothing
};

/// Tables of misuses, refused at every level, at KVJIT_CHECK_BATCH and up, at KVJIT_CHECK_FULL.
std::span<const BatchMisuse> scalar_misuses();
std::span<const BatchMisuse> pointer_misuses();
std::span<const BatchMisuse> table_misuses();
std::span<const BatchMisuse> starts_misuses();
std::span<const BatchMisuse> entry_misuses();
std::span<const BatchMisuse> shared_slot_misuses();

inline std::string_view level_name(kvjit_check_level level) {
    return level == KVJIT_CHECK_FULL ? "[found by KVJIT_CHECK_FULL]" : "[found by KVJIT_CHECK_BATCH and up]";
}

/// Each misuse is refused at `loosest` and at every stricter level, and accepted by looser ones, whether the plan
/// stores or not; or only where it does.
inline void expect_misuses(std::span<const BatchMisuse> misuses, kvjit_check_level loosest) {
    for (const BatchMisuse& misuse : misuses) {
        CAPTURE(misuse.name);
        BatchCase c(misuse.spec);
        misuse.spoil(c);
        for (int level = KVJIT_CHECK_FULL; level <= KVJIT_CHECK_NONE; ++level) {
            for (const bool stores : {true, false}) {
                CAPTURE(level);
                CAPTURE(stores);
                const auto result = rt::check_batch(c.spec, c.batch, {static_cast<kvjit_check_level>(level), stores});
                if (level > loosest || (misuse.of_stores && !stores)) {
                    expect_accepted(result);
                    continue;
                }
                expect_refused(result, misuse.want);
                const bool names_level = result.error().message.find(level_name(loosest)) != std::string::npos;
                CHECK(names_level == (loosest != KVJIT_CHECK_NONE));
                CHECK((misuse.of_stores || result.error().message.find("stores_nothing") == std::string::npos));
            }
        }
    }
}

inline constexpr const char* kOffset = "op=MultiHeadCacheAttention,cache_mode=offset";
inline constexpr const char* kTokens = "op=MultiHeadCacheAttention,cache_mode=token_table";
inline constexpr const char* kPages = "op=MultiHeadCacheAttention,cache_mode=page_table,page_size=4";
inline constexpr const char* kBlocks = "op=MultiHeadCacheAttention,cache_mode=block_table,page_size=4,layout=N2LTHD";
inline constexpr const char* kStore = "op=KeyValueCache,cache_mode=page_table,page_size=4";
inline constexpr const char* kDense = "op=MultiHeadAttention";
inline constexpr const char* kMerge = "op=Merge";

}  // namespace kvjit::test

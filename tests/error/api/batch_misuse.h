// One misuse of a batch: a legal case, what spoils it, and the refusal that must follow.
#pragma once

#include <span>

#include "batch_case.h"
#include "check/check_batch.h"
#include "device_run.h"
#include "expect.h"

namespace kvjit::test {

struct BatchMisuse {
    std::string_view name;
    std::string_view spec;
    void (*spoil)(BatchCase&);
    Refusal want;
    bool of_stores = false;         // accepted where the plan stores nothing
    std::int64_t device_limit = 0;  // where a device's is another
};

/// Tables of misuses, refused at every level, at KVJIT_CHECK_BATCH and up, at KVJIT_CHECK_FULL.
extern const std::span<const BatchMisuse> scalar_misuses;
extern const std::span<const BatchMisuse> pointer_misuses;
extern const std::span<const BatchMisuse> table_misuses;
extern const std::span<const BatchMisuse> starts_misuses;
extern const std::span<const BatchMisuse> entry_misuses;
extern const std::span<const BatchMisuse> shared_slot_misuses;
/// The same of blocks at addresses and of blocks of sequences.
extern const std::span<const BatchMisuse> block_outline_misuses;
extern const std::span<const BatchMisuse> block_row_misuses;
extern const std::span<const BatchMisuse> block_entry_misuses;
extern const std::span<const BatchMisuse> shared_block_misuses;

inline std::string_view level_name(kvjit_check_level level) {
    return level == KVJIT_CHECK_FULL ? "[found by KVJIT_CHECK_FULL]" : "[found by KVJIT_CHECK_BATCH and up]";
}

/// On the host, and on the device, whose plan is given the same arrays. It looks at none of them without a check, and
/// at none of Merge's.
inline void expect_misuse(const BatchMisuse& misuse, const BatchCase& c, kvjit_check_level loosest,
                          const rt::BatchUse& use) {
    const auto result = rt::check_batch(c.spec, c.batch, use);
    if (misuse.of_stores && !use.stores && use.level == KVJIT_CHECK_FULL && !misuse.want.address)
        expect_accepted(run_on_device(c, use));
    if (use.level > loosest || (misuse.of_stores && !use.stores)) return expect_accepted(result);
    expect_refused(result, misuse.want);
    const std::string& message = result.error().message;
    CHECK((message.find(level_name(loosest)) != std::string::npos) == (loosest != KVJIT_CHECK_NONE));
    CHECK((misuse.of_stores || message.find("stores_nothing") == std::string::npos));
    if (use.level == KVJIT_CHECK_NONE || c.spec.op == KVJIT_OP_MERGE) return;
    Refusal want = misuse.want;
    if (misuse.device_limit != 0) want.limit = misuse.device_limit;
    expect_refused(run_on_device(c, use), want);
}

/// Each misuse is refused at `loosest` and at every stricter level, and accepted by looser ones, whether the plan
/// stores or not; or only where it does.
inline void expect_misuses(std::span<const BatchMisuse> misuses, kvjit_check_level loosest) {
    for (const BatchMisuse& misuse : misuses) {
        CAPTURE(misuse.name);
        BatchCase c(misuse.spec);
        misuse.spoil(c);
        for (const auto level : {KVJIT_CHECK_FULL, KVJIT_CHECK_BATCH, KVJIT_CHECK_NONE}) {
            for (const bool stores : {true, false}) {
                CAPTURE(static_cast<int>(level));
                CAPTURE(stores);
                expect_misuse(misuse, c, loosest, {level, stores});
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
inline constexpr const char* kWindowed =
    "op=MultiHeadCacheAttention,cache_mode=page_table,page_size=4,has_window=1,has_soft_cap=1";
inline constexpr const char* kMerge = "op=Merge";
inline constexpr const char* kPointers =
    "op=MultiHeadCacheAttention,cache_mode=block_pointers,page_size=4,layout=2LTHD";
inline constexpr const char* kScaledPointers =
    "op=MultiHeadCacheAttention,cache_mode=block_pointers,page_size=4,layout=2LTHD,quant_bit=8";
inline constexpr const char* kSequences = "op=MultiHeadCacheAttention,cache_mode=sequence_table,layout=NL2THD";

}  // namespace kvjit::test

// One misuse of a run's tensors: a legal case, what spoils it, and the refusal that must follow.
#pragma once

#include <span>

#include "batch_case.h"
#include "check/check_tensors.h"
#include "expect.h"

namespace kvjit::test {

struct TensorsMisuse {
    std::string_view name;
    std::string_view spec;
    void (*spoil)(TensorsCase&);
    Refusal want;
    bool of_stores = false;  // accepted where the plan stores nothing
};

extern const std::span<const TensorsMisuse> missing_tensors;
extern const std::span<const TensorsMisuse> unwanted_tensors;
extern const std::span<const TensorsMisuse> overlapping_tensors;
extern const std::span<const TensorsMisuse> layer_misuses;
extern const std::span<const TensorsMisuse> type_misuses;
extern const std::span<const TensorsMisuse> extent_misuses;
extern const std::span<const TensorsMisuse> tensor_pointer_misuses;
extern const std::span<const TensorsMisuse> stride_misuses;
extern const std::span<const TensorsMisuse> cache_tensor_misuses;

inline gen::Result<void> check(const TensorsCase& c) {
    return rt::check_tensors(rt::batch_view(c.spec, c.batch, c.stores), rt::rows_of(c.spec, c.batch), c.tensors,
                             c.layer_idx);
}

inline void expect_misuses(std::span<const TensorsMisuse> misuses) {
    for (const TensorsMisuse& misuse : misuses) {
        CAPTURE(misuse.name);
        TensorsCase c(misuse.spec);
        expect_accepted(check(c));
        misuse.spoil(c);
        expect_refused(check(c), misuse.want);
        CHECK((misuse.of_stores == (check(c).error().message.find("stores_nothing") != std::string::npos)));
        if (misuse.want.argument.starts_with("current_")) continue;  // which a plan that stores nothing takes none of
        c.stores = false;
        c.tensors.current_key = c.tensors.current_value = {};
        if (misuse.of_stores) {
            expect_accepted(check(c));
        } else {
            expect_refused(check(c), misuse.want);
        }
    }
}

inline constexpr const char* kAttend = "op=MultiHeadCacheAttention,cache_mode=page_table,page_size=4,layout=L2HTD";
inline constexpr const char* kAttendBlocks =
    "op=MultiHeadCacheAttention,cache_mode=block_table,page_size=4,layout=N2LTHD,quant_bit=8,t3=f16";
inline constexpr const char* kAttendApart =
    "op=MultiHeadCacheAttention,cache_mode=block_table,page_size=4,layout=NLTHD,value_layout=NLHTD,quant_bit=8";
inline constexpr const char* kAttendPointers =
    "op=MultiHeadCacheAttention,cache_mode=block_pointers,page_size=4,layout=2LTHD,quant_bit=8";
inline constexpr const char* kStore4 = "op=KeyValueCache,cache_mode=offset,layout=TL2HD,quant_bit=4,quant_group=8";
inline constexpr const char* kStorePlain = "op=KeyValueCache,cache_mode=offset,layout=TL2HD";
inline constexpr const char* kDenseMask2 = "op=MultiHeadAttention,attn_mask=2";
inline constexpr const char* kDenseMask3 = "op=MultiHeadAttention,attn_mask=3";
inline constexpr const char* kDensePlain = "op=MultiHeadAttention";
inline constexpr const char* kMergeParts = "op=Merge";

}  // namespace kvjit::test

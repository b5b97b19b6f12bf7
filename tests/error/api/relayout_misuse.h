// One misuse of a relayout: a legal case, what spoils it, and the refusal that must follow.
#pragma once

#include "relayout_case.h"

namespace kvjit::test {

/// The caches that relayouts of these tests go between.
inline constexpr std::string_view kPages = "cache_mode=page_table,page_size=4,layout=L2HTD";
inline constexpr std::string_view kBlocks = "cache_mode=block_table,page_size=4,layout=N2LTHD";
inline constexpr std::string_view kQuantised = "cache_mode=block_table,page_size=4,layout=NL2HTD,quant_bit=8";
inline constexpr std::string_view kApart = "cache_mode=token_table,layout=LTHD";
inline constexpr std::string_view kOffset = "cache_mode=offset,layout=TL2HD";
inline constexpr std::string_view kPointers = "cache_mode=block_pointers,page_size=4,layout=2LTHD";
inline constexpr std::string_view kScaledPointers = "cache_mode=block_pointers,page_size=4,layout=2LTHD,quant_bit=8";

struct RelayoutMisuse {
    std::string_view name, from, to;
    void (*spoil)(RelayoutCase&);
    Refusal want;
};

}  // namespace kvjit::test

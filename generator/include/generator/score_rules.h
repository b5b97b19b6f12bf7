// The score rules (docs/semantics.md, section 3), one row each: the rule's field in the spec, its constant and its
// numbers in the batch. From the rows follow the spec's table of fields, what attention's operators take, their
// programs' constants and so identities, the batch's defaults and checks, the kernels' arguments, and the metadata of
// recorded calls. docs/architecture.md explains how to add one.
#pragma once

#include <array>
#include <limits>
#include <span>

#include "common/abi.h"
#include "generator/field.h"

namespace kvjit::gen {

/// A number of the batch that belongs to a rule.
template <class T>
struct ScoreNumber {
    const char* name;            // "soft_cap"
    T kvjit_batch::* given;      // the caller's
    T abi::ScoreArgs::* passed;  // the kernels'
    T none, none_passed;         // the default, the only value allowed without the rule; and the kernels' for it
    T least;                     // with the rule: the least finite number allowed
    const char* takes;           // that range in words
};
using ScoreCount = ScoreNumber<std::int64_t>;
using ScoreFloat = ScoreNumber<float>;

struct ScoreRule {
    Field field;
    SpecMember member;
    bool is_flag;               // 0 or 1: the constant is a bool, else an int
    std::string_view constant;  // of the decode and prefill programs
    std::span<const ScoreCount> counts;
    std::span<const ScoreFloat> floats;
};

/// Calls f with each of the rule's numbers.
template <class F>
constexpr void for_each_number(const ScoreRule& rule, F&& f) {
    for (const ScoreCount& number : rule.counts) f(number);
    for (const ScoreFloat& number : rule.floats) f(number);
}

/// A rule that a spec has (1) or lacks (0).
template <SpecMember kMember>
constexpr ScoreRule flag_rule(std::string_view name, std::string_view help, std::string_view constant,
                              std::span<const ScoreCount> counts = {}, std::span<const ScoreFloat> floats = {}) {
    return {field<NamedField<kMember, kBools>>(name, "0 | 1", help), kMember, true, constant, counts, floats};
}

inline constexpr ScoreCount kWindowCounts[] = {
    {"window_left", &kvjit_batch::window_left, &abi::ScoreArgs::window_left, -1, abi::kNoLimit, -1,
     "0 or more, or -1 for all keys"},
    {"window_right", &kvjit_batch::window_right, &abi::ScoreArgs::window_right, -1, abi::kNoLimit, -1,
     "0 or more, or -1 for all keys"},
};
inline constexpr ScoreFloat kSoftCapFloats[] = {
    {"soft_cap", &kvjit_batch::soft_cap, &abi::ScoreArgs::soft_cap, 0, 0, std::numeric_limits<float>::denorm_min(),
     "a finite number above 0"},
};
inline constexpr Name kMaskRanks[] = {{"0", 0}, {"2", 2}, {"3", 3}};

inline constexpr std::array kScoreRules = {
    flag_rule<&KernelSpec::is_alibi>("is_alibi", "add slope[h] * distance; masks keys past the query everywhere",
                                     "kAlibi"),
    flag_rule<&KernelSpec::has_window>("has_window", "hide keys further from the query than the batch's window",
                                       "kWindow", kWindowCounts),
    flag_rule<&KernelSpec::has_soft_cap>("has_soft_cap", "cap scores: c * tanh(score / c), c the batch's soft_cap",
                                         "kSoftCap", {}, kSoftCapFloats),
    flag_rule<&KernelSpec::has_sinks>("has_sinks", "add exp(sinks[h]) to each row's sum of exp(score)", "kSinks"),
    ScoreRule{field<NamedField<&KernelSpec::attn_mask, kMaskRanks>>("attn_mask", "0 | 2 | 3",
                                                                    "rank of the additive mask: none, (S, W), "
                                                                    "(H, S, W)"),
              &KernelSpec::attn_mask,
              false,
              "kMaskRank",
              {},
              {}},
};

}  // namespace kvjit::gen

// What x86-64 CPUs may have: features by LLVM's names, and levels, which are named sets of them.
#pragma once

#include <bitset>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "generator/error.h"

namespace kvjit::gen {

struct X86Feature {
    std::string_view name;     // "avx512vnni"
    int level;                 // the first of x86_levels() that has it, from 1 on; 0: none has
    std::string_view implies;  // names, separated by spaces: no CPU has it without these
};
/// All features that compiled code may depend on. Each that a target lacks is switched off by name.
std::span<const X86Feature> x86_features();

/// "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", each as the psABI defines it, then what servers have beyond v4:
/// "x86-64-v4-vnni" (VNNI and VBMI: Ice Lake), "x86-64-v4-bf16" (bfloat16: Zen 4), "x86-64-v4-fp16", "x86-64-v4-amx"
/// (Sapphire Rapids). Each has all of those before it.
std::span<const std::string_view> x86_levels();

/// Indexed as x86_features().
using X86Features = std::bitset<64>;

bool has_feature(const X86Features& features, std::string_view name);
/// The features whose implied features are all among `features`. Others are dropped: a hypervisor may mask a feature
/// and expose another that implies it; a compiler would switch the first one on again.
X86Features consistent(const X86Features& features);
X86Features level_features(int level);

/// "x86-64-v3", "x86-64-v3+avxvnni+gfni": the highest level that is complete, then the features beyond it.
std::string print_features(const X86Features& features);
/// The inverse of print_features; nullopt where a name is unknown, or a feature lacks what it implies.
std::optional<X86Features> parse_features(std::string_view text);

/// Features by name, separated by commas; nullopt where a name is unknown, or one of x86-64's own.
std::optional<X86Features> parse_mask(std::string_view text);

/// The first feature that `program` has and `machine` lacks; empty if the machine can run it.
std::string_view missing_feature(const X86Features& program, const X86Features& machine);

/// Whether AMD made the CPU, by a feature (sse4a) that no Intel has.
bool is_amd(const X86Features& features);

/// The CPU whose timings LLVM's instruction scheduling uses for these features. Features decide, since hypervisors
/// invent CPU names. Adds no instruction and changes no result.
std::string_view tuning_cpu(const X86Features& features);

}  // namespace kvjit::gen

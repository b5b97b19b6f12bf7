#include "generator/x86.h"

#include <algorithm>
#include <iterator>

namespace kvjit::gen {
namespace {

constexpr X86Feature kFeatures[] = {
    {"cmov", 1, ""},
    {"cx8", 1, ""},
    {"fxsr", 1, ""},
    {"mmx", 1, ""},
    {"sse", 1, ""},
    {"sse2", 1, "sse"},
    {"crc32", 2, ""},
    {"cx16", 2, "cx8"},
    {"popcnt", 2, ""},
    {"sahf", 2, ""},
    {"sse3", 2, "sse2"},
    {"ssse3", 2, "sse3"},
    {"sse4.1", 2, "ssse3"},
    {"sse4.2", 2, "sse4.1"},
    {"avx", 3, "sse4.2"},
    {"avx2", 3, "avx"},
    {"bmi", 3, ""},
    {"bmi2", 3, ""},
    {"f16c", 3, "avx"},
    {"fma", 3, "avx"},
    {"lzcnt", 3, ""},
    {"movbe", 3, ""},
    {"xsave", 3, ""},
    {"avx512f", 4, "avx2 f16c fma"},
    {"avx512bw", 4, "avx512f"},
    {"avx512cd", 4, "avx512f"},
    {"avx512dq", 4, "avx512f"},
    {"avx512vl", 4, "avx512f"},
    {"avx512vbmi", 5, "avx512bw"},
    {"avx512vnni", 5, "avx512f"},
    {"avx512bf16", 6, "avx512bw"},
    {"avx512fp16", 7, "avx512bw avx512dq avx512vl"},
    {"amx-tile", 8, ""},
    {"amx-bf16", 8, "amx-tile"},
    {"amx-int8", 8, "amx-tile"},
    {"adx", 0, ""},
    {"aes", 0, "sse2"},
    {"amx-fp16", 0, "amx-tile"},
    {"avx512bitalg", 0, "avx512bw"},
    {"avx512ifma", 0, "avx512f"},
    {"avx512vbmi2", 0, "avx512bw"},
    {"avx512vp2intersect", 0, "avx512f"},
    {"avx512vpopcntdq", 0, "avx512f"},
    {"avxifma", 0, "avx2"},
    {"avxneconvert", 0, "avx2"},
    {"avxvnni", 0, "avx2"},
    {"avxvnniint16", 0, "avx2"},
    {"avxvnniint8", 0, "avx2"},
    {"sse4a", 0, "sse3"},
    {"fma4", 0, "avx sse4a"},
    {"gfni", 0, "sse2"},
    {"pclmul", 0, "sse2"},
    {"prfchw", 0, ""},
    {"rdrnd", 0, ""},
    {"rdseed", 0, ""},
    {"sha", 0, "sse2"},
    {"sha512", 0, "avx2"},
    {"tbm", 0, ""},
    {"vaes", 0, "aes avx2"},
    {"vpclmulqdq", 0, "avx pclmul"},
    {"xop", 0, "fma4"},
};
static_assert(std::size(kFeatures) <= X86Features().size());

constexpr std::string_view kLevels[] = {"x86-64",         "x86-64-v2",      "x86-64-v3",      "x86-64-v4",
                                        "x86-64-v4-vnni", "x86-64-v4-bf16", "x86-64-v4-fp16", "x86-64-v4-amx"};

std::optional<std::size_t> place_of(std::string_view name) {
    const auto* found = std::ranges::find(kFeatures, name, &X86Feature::name);
    if (found == std::end(kFeatures)) return std::nullopt;
    return static_cast<std::size_t>(found - std::begin(kFeatures));
}

/// Removes and returns the text before `separator`.
std::string_view take_word(std::string_view& text, char separator) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
}

bool has_implied(const X86Features& features, const X86Feature& feature) {
    for (std::string_view rest = feature.implies; !rest.empty();) {
        if (!has_feature(features, take_word(rest, ' '))) return false;
    }
    return true;
}

int level_of(const X86Features& features) {
    int level = 0;
    while (level < std::ssize(kLevels) && (level_features(level + 1) & ~features).none()) ++level;
    return level;
}

}  // namespace

std::span<const X86Feature> x86_features() {
    return kFeatures;
}

std::span<const std::string_view> x86_levels() {
    return kLevels;
}

bool has_feature(const X86Features& features, std::string_view name) {
    const std::optional<std::size_t> place = place_of(name);
    return place && features[*place];
}

X86Features consistent(const X86Features& features) {
    X86Features kept = features, before;
    do {
        before = kept;
        for (std::size_t i = 0; i < std::size(kFeatures); ++i) kept[i] = kept[i] && has_implied(before, kFeatures[i]);
    } while (kept != before);
    return kept;
}

X86Features level_features(int level) {
    X86Features features;
    for (std::size_t i = 0; i < std::size(kFeatures); ++i) {
        features[i] = kFeatures[i].level != 0 && kFeatures[i].level <= level;
    }
    return features;
}

std::string print_features(const X86Features& features) {
    const int level = std::max(1, level_of(features));
    std::string text(kLevels[level - 1]);
    const X86Features beside = features & ~level_features(level);
    for (std::size_t i = 0; i < std::size(kFeatures); ++i) {
        if (beside[i]) text.append("+").append(kFeatures[i].name);
    }
    return text;
}

std::optional<X86Features> parse_features(std::string_view text) {
    if (text.ends_with('+')) return std::nullopt;
    const auto* level = std::ranges::find(kLevels, take_word(text, '+'));
    if (level == std::end(kLevels)) return std::nullopt;
    X86Features features = level_features(static_cast<int>(level - std::begin(kLevels)) + 1);
    while (!text.empty()) {
        const std::optional<std::size_t> place = place_of(take_word(text, '+'));
        if (!place) return std::nullopt;
        features.set(*place);
    }
    if (consistent(features) != features) return std::nullopt;
    return features;
}

std::optional<X86Features> parse_mask(std::string_view text) {
    if (text.ends_with(',')) return std::nullopt;
    X86Features mask;
    do {
        const std::optional<std::size_t> place = place_of(take_word(text, ','));
        if (!place || kFeatures[*place].level == 1) return std::nullopt;
        mask.set(*place);
    } while (!text.empty());
    return mask;
}

std::string_view missing_feature(const X86Features& program, const X86Features& machine) {
    for (std::size_t i = 0; i < std::size(kFeatures); ++i) {
        if (program[i] && !machine[i]) return kFeatures[i].name;
    }
    return {};
}

bool is_amd(const X86Features& features) {
    return has_feature(features, "sse4a");
}

std::string_view tuning_cpu(const X86Features& features) {
    struct Row {
        std::string_view feature, cpu;
    };
    // The first row whose feature is present decides.
    constexpr Row kAmd[] = {{"avx512f", "znver4"}, {"avx2", "znver3"}};
    constexpr Row kOthers[] = {{"amx-tile", "sapphirerapids"},
                               {"avx512vbmi", "icelake-server"},
                               {"avx512f", "skylake-avx512"},
                               {"avx2", "haswell"}};
    const std::span<const Row> rows = is_amd(features) ? std::span<const Row>(kAmd) : kOthers;
    for (const Row& row : rows) {
        if (has_feature(features, row.feature)) return row.cpu;
    }
    return "generic";
}

}  // namespace kvjit::gen

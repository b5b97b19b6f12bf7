#include "generator/architecture.h"

#include <algorithm>
#include <charconv>

namespace kvjit::gen {
namespace {

constexpr KnownArchitecture kKnown[] = {
    {80, 11000, false},  {86, 11010, false}, {87, 11040, true},   {88, 13000, false},
    {89, 11080, false},  {90, 11080, false}, {100, 12080, false}, {101, 12080, true, 13000, 110},
    {103, 12090, false}, {110, 13000, true}, {120, 12080, false}, {121, 12090, false},
};
/// The oldest one with what the templates need: cp.async and mma.m16n8k16.
constexpr int kOldestSm = kKnown[0].number;
constexpr int kOldestA = 90, kOldestF = 100;

bool contains(std::span<const int> numbers, int number) {
    return std::ranges::find(numbers, number) != numbers.end();
}

std::string list_text() {
    std::string text;
    for (const KnownArchitecture& known : kKnown) text += " sm_" + std::to_string(known.number);
    return text;
}

/// From Hopper on each architecture has an "a", from Blackwell on an "f".
bool has_letter(const Architecture& architecture) {
    return architecture.letter == 0 || architecture.number >= (architecture.letter == 'a' ? kOldestA : kOldestF);
}

bool is_tegra(int number) {
    const KnownArchitecture* known = find_architecture(number);
    return known != nullptr && known->is_tegra;
}

}  // namespace

Architecture architecture_of(std::string_view name) {
    if (!name.starts_with("sm_")) return {};
    name.remove_prefix(3);
    Architecture found;
    if (name.ends_with('a') || name.ends_with('f')) {
        found.letter = name.back();
        name.remove_suffix(1);
    }
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), found.number);
    const bool whole = error == std::errc() && end == name.data() + name.size() && !name.starts_with('0');
    return whole ? found : Architecture();
}

std::string Architecture::name() const {
    return "sm_" + std::to_string(number) + (letter != 0 ? std::string(1, letter) : "");
}

std::span<const KnownArchitecture> known_architectures() {
    return kKnown;
}

const KnownArchitecture* find_architecture(int number) {
    const auto* found = std::ranges::find(kKnown, number, &KnownArchitecture::number);
    return found != std::end(kKnown) ? found : nullptr;
}

std::string cuda_version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string unknown_architecture_help(const Architecture& wanted, int version) {
    const KnownArchitecture* known = find_architecture(wanted.number);
    if (known == nullptr || known->renamed_by == 0 || version < known->renamed_by) {
        return "a newer GPU needs a newer NVRTC";
    }
    return "from CUDA " + cuda_version_text(known->renamed_by) + " on " + wanted.name() + " is named " +
           Architecture{known->new_number, wanted.letter}.name();
}

bool runs_code(int number, const Architecture& code) {
    if (number == code.number) return true;
    const bool later = number / 10 == code.number / 10 && number > code.number;
    return later && code.letter != 'a' && !is_tegra(number) && !is_tegra(code.number);
}

std::vector<Architecture> runnable_code(const Architecture& own) {
    std::vector<Architecture> codes;
    for (const char letter : {'f', '\0'}) {
        for (auto known = std::rbegin(kKnown); known != std::rend(kKnown); ++known) {
            const Architecture code{known->number, letter};
            if (has_letter(code) && runs_code(own.number, code)) codes.push_back(code);
        }
    }
    return codes;
}

Result<Architecture> named_architecture(std::string_view name, std::span<const int> further) {
    const Architecture architecture = architecture_of(name);
    const std::string given = "target is \"" + std::string(name) + "\"; ";
    if (architecture.number < kOldestSm) {
        return fail(KVJIT_BAD_TARGET, "target", given + "CUDA kernels need sm_80 or newer, as sm_80 or sm_90a",
                    architecture.number, kOldestSm);
    }
    if (find_architecture(architecture.number) == nullptr && !contains(further, architecture.number)) {
        return fail(KVJIT_BAD_TARGET, "target",
                    given + "the architectures are" + list_text() + ", and those that an installed NVRTC adds",
                    architecture.number);
    }
    if (has_letter(architecture)) return architecture;
    return fail(KVJIT_BAD_TARGET, "target", given + "an a there is from sm_90a on, an f from sm_100f on",
                architecture.number, architecture.letter == 'a' ? kOldestA : kOldestF);
}

std::optional<Architecture> nearest_architecture(const Architecture& wanted, const ArchitectureList& list) {
    const bool takes_letter = wanted.letter != 'f' || list.has_families;
    if (contains(list.numbers, wanted.number) && takes_letter) return wanted;
    Architecture best;
    for (const int number : list.numbers) {
        if (runs_code(wanted.number, {number, 0})) best.number = std::max(best.number, number);
    }
    return best.number != 0 ? std::optional(best) : std::nullopt;
}

}  // namespace kvjit::gen

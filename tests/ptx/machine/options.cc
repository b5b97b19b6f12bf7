#include "ptx/machine/options.h"

#include <charconv>
#include <map>

#include "ptx/machine/fault.h"

namespace kvjit::ptx {
namespace {

[[noreturn]] void refuse(std::string_view name, std::string_view value, const std::string& expected) {
    throw Fault(FaultKind::kText, std::string(name) + " is '" + std::string(value) + "', expected " + expected);
}

u64 number(std::string_view name, std::string_view value, u64 low, u64 high) {
    u64 read = 0;
    const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), read);
    if (status == std::errc{} && end == value.data() + value.size() && read >= low && read <= high) return read;
    refuse(name, value, "a number from " + std::to_string(low) + " to " + std::to_string(high));
}

template <class T>
T word(std::string_view name, std::string_view value, const std::map<std::string_view, T>& words) {
    if (const auto found = words.find(value); found != words.end()) return found->second;
    std::string expected;
    for (const auto& [known, meaning] : words) expected += (expected.empty() ? "" : ", ") + std::string(known);
    refuse(name, value, "one of " + expected);
}

void set_capability(Options& options, std::string_view value) {
    const std::size_t dot = value.find('.');
    if (dot == std::string_view::npos) refuse("capability", value, "two numbers, as in 9.0");
    options.major = static_cast<int>(number("capability", value.substr(0, dot), 8, 99));
    options.minor = static_cast<int>(number("capability", value.substr(dot + 1), 0, 9));
}

// Fraction bits and products at once of mma on each generation: Fasi et al., Numerical behavior of NVIDIA tensor cores
// (2021); Xie et al., MMA-Sim (2025). `narrow` is Volta's, the least that any has had.
void set(Options& options, std::string_view name, std::string_view value) {
    if (name == "seed") {
        options.seed = number(name, value, 0, ~u64{0});
    } else if (name == "capability") {
        set_capability(options, value);
    } else if (name == "multiprocessors") {
        options.multiprocessors = static_cast<int>(number(name, value, 1, 1024));
    } else if (name == "blocks") {
        options.resident_blocks = static_cast<int>(number(name, value, 1, 64));
    } else if (name == "copies") {
        options.copies = word<Copies>(
            name, value, {{"issue", Copies::kAtIssue}, {"wait", Copies::kAtWait}, {"poison", Copies::kPoisoned}});
    } else if (name == "wgmma") {
        options.products = word<ProductTime>(
            name, value,
            {{"seed", ProductTime::kBySeed}, {"issue", ProductTime::kAtIssue}, {"wait", ProductTime::kAtWait}});
    } else if (name == "mma") {
        options.sums = word<Sums>(name, value,
                                  {{"narrow", {4, 23}}, {"ampere", {8, 24}}, {"hopper", {16, 25}}, {"exact", {0, 0}}});
    } else if (name == "noise") {
        options.has_noise = number(name, value, 0, 1) == 1;
    } else if (name == "stores") {
        options.has_late_stores = word<bool>(name, value, {{"late", true}, {"plain", false}});
    } else {
        refuse("an option", name, "seed, capability, multiprocessors, blocks, copies, wgmma, mma, noise or stores");
    }
}

}  // namespace

bool Options::runs(std::string_view target, bool is_machine_code) const {
    constexpr std::string_view kPrefix = "sm_";
    if (!target.starts_with(kPrefix)) return false;
    target.remove_prefix(kPrefix.size());
    const bool is_exact = target.ends_with('a'), is_family = target.ends_with('f');
    if (is_exact || is_family) target.remove_suffix(1);
    int number = 0;
    const auto read = std::from_chars(target.data(), target.data() + target.size(), number);
    if (read.ec != std::errc{} || read.ptr != target.data() + target.size()) return false;
    const int here = 10 * major + minor;
    if (is_exact) return number == here;
    return number <= here && (number / 10 == major || !(is_machine_code || is_family));
}

Options parse_options(std::string_view text) {
    Options options;
    while (!text.empty()) {
        const std::string_view one = text.substr(0, text.find(','));
        const std::size_t equals = one.find('=');
        if (equals == std::string_view::npos) refuse("an option", one, "NAME=VALUE");
        set(options, one.substr(0, equals), one.substr(equals + 1));
        text.remove_prefix(std::min(one.size() + 1, text.size()));
    }
    return options;
}

}  // namespace kvjit::ptx

#include "bundle/near.h"

#include <cstddef>
#include <set>
#include <string_view>

namespace kvjit::rt {
namespace {

constexpr std::size_t kMostNear = 4;

/// Whether `other` is the same program for another target of its kind, or from another version of kvjit.
bool is_near(const gen::Identity& wanted, const gen::Identity& other) {
    const auto kind = [](const std::string& target) { return target.substr(0, target.rfind(':')); };
    return other.program == wanted.program && other.constants == wanted.constants &&
           kind(other.target) == kind(wanted.target);
}

/// All that keeps `other`, which is the same program, from serving for `wanted`.
std::string difference(const gen::Identity& wanted, const gen::Identity& other) {
    std::string all;
    const auto add = [&](const std::string& one) { all += (all.empty() ? "" : " ") + one; };
    const auto is_of = [](std::string_view what, int theirs, int ours) {
        return std::string(what) + ' ' + std::to_string(theirs) + " (this library's is " + std::to_string(ours) + ")";
    };
    if (other.abi != wanted.abi) add("for " + is_of("kernel ABI", other.abi, wanted.abi));
    if (other.target != wanted.target) add("for " + other.target);
    if (other.variant != wanted.variant) {
        add("of variant " + other.variant);  // whose revisions are others
    } else if (other.revision != wanted.revision) {
        add("of " + is_of("revision", other.revision, wanted.revision));
    }
    return all;
}

}  // namespace

std::string near_programs(const Bundle& bundle, const gen::Identity& wanted) {
    std::set<std::string> differences;
    for (std::size_t i = 0; i < bundle.size(); ++i) {
        const auto identity = bundle.identity(i);
        if (!identity) continue;
        const auto other = gen::parse_identity(*identity);
        if (other && is_near(wanted, *other)) differences.insert(difference(wanted, *other));
    }
    std::string clause;
    std::size_t told = 0;
    for (const std::string& each : differences) {
        if (told++ == kMostNear) return clause + " and others";
        clause += (clause.empty() ? "has it " : ", ") + each;
    }
    return clause;
}

}  // namespace kvjit::rt

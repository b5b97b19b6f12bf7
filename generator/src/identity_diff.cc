// What differs between identities, in words.
#include <algorithm>

#include "generator/identity.h"
#include "generator/target.h"

namespace kvjit::gen {
namespace {

std::string change(std::string_view before, std::string_view after) {
    return std::string(before) + " -> " + std::string(after);
}

/// The differences of one program, a line each.
class Lines {
public:
    void add(std::string_view what, const std::string& how) { text_.append("  ").append(what) += ": " + how + "\n"; }

    /// `meaning`: what the difference implies; may be empty.
    void compare(std::string_view what, std::string_view before, std::string_view after, std::string_view meaning) {
        if (before != after) add(what, change(before, after).append(meaning.empty() ? "" : ": ").append(meaning));
    }

    std::string under(const std::string& program) const {
        return text_.empty() ? program + ": nothing\n" : program + ":\n" + text_;
    }

private:
    std::string text_;
};

/// The elements of `all` beyond those in `others`, as multisets.
template <class T>
std::vector<T> without(std::vector<T> all, const std::vector<T>& others) {
    for (const T& other : others) {
        if (const auto it = std::ranges::find(all, other); it != all.end()) all.erase(it);
    }
    return all;
}

/// `one`, `all`: the noun in the singular, with a space, and in the plural. A name may have several values, as two
/// libraries may share a name.
void compare_values(std::string_view one, std::string_view all, const std::vector<NamedValue>& before,
                    const std::vector<NamedValue>& after, Lines& lines) {
    const auto what = [&](const NamedValue& value) { return std::string(one) + value.name; };
    std::vector<NamedValue> fresh = without(after, before);
    for (const NamedValue& old : without(before, after)) {
        const auto now = std::ranges::find(fresh, old.name, &NamedValue::name);
        if (now == fresh.end()) {
            lines.add(what(old), old.value + ", gone");
        } else {
            lines.add(what(old), change(old.value, now->value));
            fresh.erase(now);
        }
    }
    for (const NamedValue& now : fresh) lines.add(what(now), now.value + ", new");
    if (before != after && std::ranges::is_permutation(before, after)) lines.add(all, "the same in another order");
}

std::string words(std::string_view what, const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? std::string(what) : "") + " " + word;
    return text;
}

/// "added a b; removed c"; where both have the same words, `same`.
std::string moved(const std::vector<std::string>& before, const std::vector<std::string>& after,
                  std::string_view same) {
    const std::string added = words("added", without(after, before)),
                      removed = words("removed", without(before, after));
    if (added.empty() && removed.empty()) return std::string(same);
    return added + (!added.empty() && !removed.empty() ? "; " : "") + removed;
}

std::vector<std::string> features_of(const Target& target) {
    std::vector<std::string> names;
    for (const X86Feature& feature : x86_features()) {
        if (target.has(feature.name)) names.emplace_back(feature.name);
    }
    if (target.emulates_amx) names.emplace_back("amx-emulated");
    return names;
}

/// The last part of a target's text: "sm_90a", "x86-64-v3".
std::string_view name_in(std::string_view target) {
    return target.substr(target.rfind(':') + 1);
}

/// Precondition: both texts are targets'.
void compare_targets(const std::string& before, const std::string& after, Lines& lines) {
    if (before == after) return;
    const Target old = *parse_target(before), now = *parse_target(after);
    if (old.backend != now.backend) return lines.compare("target", before, after, "another kind of machine");
    const std::string names = change(name_in(before), name_in(after)) + ": ";
    if (old.backend == Backend::kCuda) return lines.add("target", names + "another architecture");
    lines.add("target", names + moved(features_of(old), features_of(now), "the same features, written in another way"));
}

void compare_identities(const Identity& before, const Identity& after, Lines& lines) {
    lines.compare("program", before.program, after.program, "");
    lines.compare("variant", before.variant, after.variant, "another algorithm");
    lines.compare("revision", std::to_string(before.revision), std::to_string(after.revision),
                  "the kernel's results or arguments changed");
    compare_values("constant ", "constants", before.constants, after.constants, lines);
    lines.compare("kernel ABI", std::to_string(before.abi), std::to_string(after.abi),
                  "kernels take their arguments in another way");
    compare_targets(before.target, after.target, lines);
}

/// Names of passes, without their nesting.
std::vector<std::string> passes_of(std::string_view list) {
    std::vector<std::string> names;
    while (!list.empty()) {
        const std::size_t end = std::min(list.find_first_of(",()"), list.size());
        if (end != 0) names.emplace_back(list.substr(0, end));
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return names;
}

void compare_provenances(const Provenance& before, const Provenance& after, Lines& lines) {
    lines.compare("source", before.source, after.source, "digests of the rendered text");
    compare_values("compiler ", "compiler's libraries", before.libraries, after.libraries, lines);
    if (before.flags != after.flags) lines.add("flags", moved(before.flags, after.flags, "the same in another order"));
    if (before.passes != after.passes) {
        lines.add("passes", moved(passes_of(before.passes), passes_of(after.passes),
                                  "the same, ordered or nested in another way"));
    }
}

std::string compare(const Described& before, const Described& after) {
    Lines lines;
    compare_identities(before.identity, after.identity, lines);
    if (before.provenance && after.provenance) compare_provenances(*before.provenance, *after.provenance, lines);
    if (before.provenance && !after.provenance) lines.add("provenance", "not compared: the text after lacks it");
    if (after.provenance && !before.provenance) lines.add("provenance", "not compared: the text before lacks it");
    return lines.under(before.identity.program);
}

const Described* find(const std::vector<Described>& all, const std::string& program) {
    const auto same = [&](const Described& each) { return each.identity.program == program; };
    const auto found = std::ranges::find_if(all, same);
    return found != all.end() ? &*found : nullptr;
}

std::string compare_all(const std::vector<Described>& before, const std::vector<Described>& after) {
    std::string text;
    for (const Described& old : before) {
        const Described* now = find(after, old.identity.program);
        text += now != nullptr ? compare(old, *now) : old.identity.program + ": gone\n";
    }
    for (const Described& now : after) {
        if (find(before, now.identity.program) == nullptr) text += now.identity.program + ": new\n";
    }
    return text;
}

}  // namespace

Result<std::string> diff_stages(std::string_view before, std::string_view after) {
    const Result<std::vector<Described>> old = parse_stage(before, "before");
    if (!old) return std::unexpected(old.error());
    const Result<std::vector<Described>> now = parse_stage(after, "after");
    if (!now) return std::unexpected(now.error());
    if (old->size() == 1 && now->size() == 1) return compare(old->front(), now->front());
    return compare_all(*old, *now);
}

}  // namespace kvjit::gen

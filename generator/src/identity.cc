#include "generator/identity.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "generator/target.h"
#include "words.h"

namespace kvjit::gen {
namespace {

constexpr std::string_view kIdentity = "identity: ", kProvenance = "provenance: ", kDigest = "source=",
                           kSource = "provenance: source=", kFlags = "flags", kPasses = " passes ";
constexpr const char* kNoFlags = "the provenance before this lacks its flags";
constexpr std::size_t kFixedParts = 5;  // three before the constants, two after them
constexpr std::size_t kDigestDigits = 64;

std::unexpected<Error> bad(std::string message) {
    return fail(KVJIT_BAD_ARGUMENT, "identity", std::move(message));
}

bool is_word(std::string_view text) {
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    return !text.empty() && std::ranges::all_of(text, fits);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (std::size_t end = 0; end != text.npos; text.remove_prefix(std::min(end + 1, text.size()))) {
        end = text.find(separator);
        parts.push_back(text.substr(0, end));
    }
    return parts;
}

/// Parses a number above 0 as std::to_string writes it.
std::optional<int> positive(std::string_view text) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc() && number > 0 && std::to_string(number) == text;
    return whole ? std::optional(number) : std::nullopt;
}

/// The value of "NAME=VALUE"; nullopt for another name.
std::optional<std::string_view> value_of(std::string_view part, std::string_view name) {
    const bool named = part.starts_with(name) && part.substr(name.size()).starts_with('=');
    return named ? std::optional(part.substr(name.size() + 1)) : std::nullopt;
}

Result<int> take_number(std::string_view part, std::string_view name) {
    const std::optional<std::string_view> value = value_of(part, name);
    const std::optional<int> number = value ? positive(*value) : std::nullopt;
    if (number) return *number;
    return bad(quoted(part) + " stands where " + std::string(name) + "=N does, with a number from 1 on");
}

Result<NamedValue> take_constant(std::string_view part) {
    const std::string_view name = part.substr(0, part.find('='));
    const std::string_view value = part.substr(std::min(name.size() + 1, part.size()));
    if (is_word(name) && is_word(value)) return NamedValue{std::string(name), std::string(value)};
    return bad(quoted(part) + " stands where a constant does, as kHeadDim=128");
}

Result<void> take_constants(std::span<const std::string_view> parts, Identity& identity) {
    for (const std::string_view part : parts) {
        Result<NamedValue> constant = take_constant(part);
        if (!constant) return std::unexpected(constant.error());
        for (const NamedValue& other : identity.constants) {
            if (other.name == constant->name) return bad("the constant " + other.name + " stands there twice");
        }
        identity.constants.push_back(*std::move(constant));
    }
    return {};
}

}  // namespace

std::string print_identity(const Identity& identity) {
    std::string text = identity.program + ";variant=" + identity.variant;
    text += ";revision=" + std::to_string(identity.revision);
    for (const auto& [name, value] : identity.constants) text.append(";").append(name).append("=").append(value);
    return text + ";abi=" + std::to_string(identity.abi) + ";" + identity.target;
}

Result<Identity> parse_identity(std::string_view text) {
    const std::vector<std::string_view> parts = split(text, ';');
    if (parts.size() < kFixedParts) {
        return bad(quoted(text) + " is no identity: PROGRAM;variant=...;revision=...;...;abi=...;TARGET");
    }
    if (!is_word(parts[0])) return bad(quoted(parts[0]) + " stands where a program's name does");
    const std::optional<std::string_view> variant = value_of(parts[1], "variant");
    if (!variant || !is_word(*variant)) return bad(quoted(parts[1]) + " stands where variant=NAME does");
    const Result<int> revision = take_number(parts[2], "revision");
    if (!revision) return std::unexpected(revision.error());
    const Result<int> abi = take_number(parts[parts.size() - 2], "abi");
    if (!abi) return std::unexpected(abi.error());
    const Result<Target> target = parse_target(parts.back());
    if (!target) return bad(target.error().message);
    Identity identity{std::string(parts[0]), std::string(*variant), *revision, {}, *abi, std::string(parts.back())};
    const auto constants = std::span(parts).subspan(3, parts.size() - kFixedParts);
    if (auto taken = take_constants(constants, identity); !taken) return std::unexpected(taken.error());
    return identity;
}

std::string print_maker(std::string_view libraries, std::span<const char* const> flags, std::string_view passes) {
    std::string text(libraries);
    text += kFlags;
    for (const char* flag : flags) text.append(" ").append(flag);
    if (!passes.empty()) text.append(kPasses).append(passes);
    return text;
}

std::string print_provenance(std::string_view source, std::string_view maker) {
    return std::string(kDigest).append(source).append(";").append(maker);
}

std::string_view source_digest(std::string_view provenance) {
    if (!provenance.starts_with(kDigest)) return {};
    provenance.remove_prefix(kDigest.size());
    return take_until(provenance, ";");
}

std::string print_stage(std::string_view identity, std::string_view provenance) {
    std::string text(kIdentity);
    text.append(identity).append("\n");
    return provenance.empty() ? text : text.append(kProvenance).append(provenance).append("\n");
}

namespace {

/// Parses a stage's text line by line.
class StageParser {
public:
    Result<void> take(std::string_view line) {
        const bool begins = line.starts_with(kIdentity) || line.starts_with(kSource);
        if (provenance_) return begins ? bad(kNoFlags) : take_maker(line);
        if (line.starts_with(kSource)) return take_source(line.substr(kSource.size()));
        if (line.empty()) return {};
        return take_identity(line.starts_with(kIdentity) ? line.substr(kIdentity.size()) : line);
    }

    Result<std::vector<Described>> finish() {
        if (provenance_) return bad(kNoFlags);
        if (found_.empty()) return bad("there is no identity");
        return std::move(found_);
    }

private:
    Result<void> take_identity(std::string_view text) {
        Result<Identity> identity = parse_identity(text);
        if (!identity) return std::unexpected(identity.error());
        for (const Described& other : found_) {
            if (other.identity.program == identity->program) return bad(identity->program + " stands there twice");
        }
        found_.push_back({*std::move(identity), {}});
        return {};
    }

    Result<void> take_source(std::string_view text) {
        if (found_.empty() || found_.back().provenance)
            return bad("a provenance stands without its identity before it");
        const std::string_view digest = take_until(text, ";");
        const bool whole =
            digest.size() == kDigestDigits && digest.find_first_not_of("0123456789abcdef") == digest.npos;
        if (!whole) return bad("source=" + std::string(digest) + " is no digest of 64 hexadecimal digits");
        provenance_ = Provenance{std::string(digest), {}, {}, {}};
        return take_maker(text);
    }

    /// Takes the line of a library, or that of the flags, which ends the provenance.
    Result<void> take_maker(std::string_view line) {
        const std::string_view all = line;
        const std::string_view name = take_until(line, " ");
        if (name.empty() || (name != kFlags && line.empty())) {
            return bad(quoted(all) + " stands where a compiler's library or its flags do");
        }
        if (name != kFlags) {
            provenance_->libraries.push_back({std::string(name), std::string(line)});
            return {};
        }
        take_flags(all.substr(kFlags.size()));
        found_.back().provenance = std::exchange(provenance_, std::nullopt);
        return {};
    }

    void take_flags(std::string_view text) {
        if (const std::size_t at = text.find(kPasses); at != text.npos) {
            provenance_->passes = text.substr(at + kPasses.size());
            text = text.substr(0, at);
        }
        while (!text.empty()) {
            if (const std::string_view flag = take_until(text, " "); !flag.empty())
                provenance_->flags.emplace_back(flag);
        }
    }

    std::vector<Described> found_;
    std::optional<Provenance> provenance_;  // of the last program, until its flags are read
};

}  // namespace

Result<std::vector<Described>> parse_stage(std::string_view text, std::string_view name) {
    const std::string start(name);
    StageParser parser;
    for (int line = 1; !text.empty(); ++line) {
        const Result<void> taken = parser.take(take_until(text, "\n"));
        if (taken) continue;
        const std::string where = start + ", line " + std::to_string(line) + ": ";
        return fail(KVJIT_BAD_ARGUMENT, start, where + taken.error().message, line);
    }
    Result<std::vector<Described>> all = parser.finish();
    if (!all) return fail(KVJIT_BAD_ARGUMENT, start, start + ": " + all.error().message);
    return all;
}

}  // namespace kvjit::gen

// The texts of identities and provenances. Only this code prints and parses them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generator/error.h"

namespace kvjit::gen {

struct NamedValue {
    std::string name, value;
    bool operator==(const NamedValue&) const = default;
};

/// What the code computes, and for which target. Names are texts, since another version may have written them.
struct Identity {
    std::string program;                // "attend_decode"
    std::string variant;                // "simd"
    int revision = 0;                   // from 1 on
    std::vector<NamedValue> constants;  // in the order of the spec block
    int abi = 0;                        // kernel ABI, from 1 on
    std::string target;                 // Target::text()
    bool operator==(const Identity&) const = default;
};

/// "attend_decode;variant=simd;revision=1;kHeadDim=128;...;abi=1;x86_64-unknown-linux-gnu:..."
std::string print_identity(const Identity& identity);
/// The inverse of print_identity. Errors: KVJIT_BAD_ARGUMENT; the message is a clause that begins with what is wrong.
Result<Identity> parse_identity(std::string_view text);

/// How code was made.
struct Provenance {
    std::string source;                 // digest of the rendered source, 64 hexadecimal digits
    std::vector<NamedValue> libraries;  // the compiler's: {"libkvjit_compiler", "build=5f1c..."}
    std::vector<std::string> flags;
    std::string passes;  // Clang's passes; empty for other compilers
};

/// A provenance without its source. `libraries`: a line each, "libkvjit_compiler build=5f1c...\n".
std::string print_maker(std::string_view libraries, std::span<const char* const> flags, std::string_view passes = {});

/// "source=69ee...;libkvjit_compiler build=...": the digest of the rendered source, then the maker.
std::string print_provenance(std::string_view source, std::string_view maker);
/// The source's digest in a provenance; "" if it has none.
std::string_view source_digest(std::string_view provenance);

/// One program's part of KVJIT_STAGE_IDENTITY: "identity: ...\nprovenance: source=...;..." and a newline. An empty
/// provenance, one that is not known, has no line.
std::string print_stage(std::string_view identity, std::string_view provenance);

/// One program's part, parsed.
struct Described {
    Identity identity;
    std::optional<Provenance> provenance;
};
/// The inverse of print_stage, for several distinct programs; lines of identities alone are accepted, too. `name`: the
/// text's name in errors. Errors: KVJIT_BAD_ARGUMENT, whose value is the line's number.
Result<std::vector<Described>> parse_stage(std::string_view text, std::string_view name);

/// What differs between two such texts. See kvjit_identity_diff.
Result<std::string> diff_stages(std::string_view before, std::string_view after);

}  // namespace kvjit::gen

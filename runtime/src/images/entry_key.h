// The key of an entry in a store that distinguishes makers.
#pragma once

#include <string>

#include "generator/error.h"
#include "generator/identity.h"

namespace kvjit::rt {

/// Texts are compared whole, never by digest alone.
struct EntryKey {
    std::string identity;  // lowered program + kernel ABI + target
    std::string source;    // the rendered source's digest
    /// Compiler + flags, or why they are unknown: then any maker's code of this source serves, and none is stored.
    gen::Result<std::string> maker;
};

/// The provenance of a key that has a maker.
inline std::string provenance_text(const EntryKey& key) {
    return gen::print_provenance(key.source, *key.maker);
}

}  // namespace kvjit::rt

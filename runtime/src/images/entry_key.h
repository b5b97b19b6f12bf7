// What names an entry of a store that tells makers apart.
#pragma once

#include <string>

#include "generator/error.h"
#include "generator/identity.h"

namespace kvjit::rt {

/// Texts are compared whole, never by digest alone.
struct EntryKey {
    std::string identity;  // lowered program + kernel ABI + target
    std::string source;    // the rendered source's digest
    /// Compiler + flags; else why they can't be told: then whoever made code of this source will do, and none is kept.
    gen::Result<std::string> maker;
};

/// How the code of a key that names its maker was made.
inline std::string provenance_text(const EntryKey& key) {
    return gen::print_provenance(key.source, *key.maker);
}

}  // namespace kvjit::rt

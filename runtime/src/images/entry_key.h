// What names an entry of a store that tells makers apart.
#pragma once

#include <string>

namespace kvjit::rt {

/// Both texts are compared whole, never by digest alone.
struct EntryKey {
    std::string identity;    // lowered program + kernel ABI + target
    std::string provenance;  // rendered source's digest + flags + compiler
};

}  // namespace kvjit::rt

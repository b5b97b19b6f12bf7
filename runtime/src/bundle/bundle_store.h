// A bundle as a store of images, found by their identities alone. docs/bundles.md says what that means.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>

#include "bundle/bundle_bytes.h"
#include "bundle/format.h"
#include "generator/error.h"
#include "images/store.h"
#include "log.h"

namespace kvjit::rt {

struct BundleOptions {
    std::string name;              // its name in messages: "bundle engine.kvjb"
    std::string place;             // its file: "engine.kvjb"
    std::optional<PublicKey> key;  // the key that must have signed it; nothing: any key or none
    Log log;
};

/// Opens the bundle in `bytes`, or returns the error that they are. Reads an entry only on request; a bad entry is
/// logged each time, and the answer is then Failed. Errors: KVJIT_BAD_FILE.
gen::Result<std::unique_ptr<Store>> open_bundle(std::expected<std::unique_ptr<BundleBytes>, std::string> bytes,
                                                BundleOptions options);

}  // namespace kvjit::rt

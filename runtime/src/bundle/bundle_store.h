// A bundle as a store of images: it answers to identities alone. docs/bundles.md says what that means.
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
    std::string name;              // in messages: "bundle engine.kvjb"
    std::string place;             // where it lies: "engine.kvjb"
    std::optional<PublicKey> key;  // who must have signed it; nothing: anybody or nobody
    Log log;
};

/// Opens what `bytes` are, or says why they are none. Finding nothing bad, it reads the entries that are asked for; one
/// that is bad is logged each time, and the store can't say. Errors: KVJIT_BAD_FILE.
gen::Result<std::unique_ptr<Store>> open_bundle(std::expected<std::unique_ptr<BundleBytes>, std::string> bytes,
                                                BundleOptions options);

}  // namespace kvjit::rt

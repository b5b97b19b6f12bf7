// The commands of `kvjit bundle`, each in a file of its own.
#pragma once

#include "command/command.h"

namespace kvjit::tool {

extern const Command kBundleCreate, kBundleList, kBundleVerify, kBundleExtract, kBundleMerge, kBundleDiff, kBundleSign;

/// The help of --key where it signs.
inline constexpr const char* kSignHelp = "Sign it: a private Ed25519 key in PEM (openssl genpkey -algorithm ed25519)";

}  // namespace kvjit::tool

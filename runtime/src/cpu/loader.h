// Loads an object as an Image with LLVM's ORC, which is linked in statically and hidden.
#pragma once

#include <string>
#include <string_view>

#include "generator/error.h"
#include "images/image.h"

namespace kvjit::rt {

/// Links `object` into fresh memory and finds `entry`. `name` is what perf shows. Pages are never writable and
/// executable at once. `launch`: the image's. Errors: KVJIT_BAD_FILE for bytes that are no such object; otherwise
/// KVJIT_OUT_OF_MEMORY, or KVJIT_BAD_TARGET where a policy forbids running generated code. Thread-safe.
gen::Result<ImagePtr> load_object(std::string_view object, std::string_view entry, const std::string& name,
                                  const LaunchShape& launch = {});

}  // namespace kvjit::rt

// Turns an object into an Image with LLVM's ORC, linked in statically and hidden.
#pragma once

#include <string>
#include <string_view>

#include "generator/error.h"
#include "images/image.h"

namespace kvjit::rt {

/// Links `object` into fresh memory and finds `entry`. `name` is what perf shows. Pages are never writable and
/// executable at once. Errors: KVJIT_BAD_FILE for bytes that are no such object; what is not the object's fault is
/// KVJIT_OUT_OF_MEMORY or, where a policy forbids to run code that was made, KVJIT_BAD_TARGET. Thread-safe.
/// `launch`: the image's.
gen::Result<ImagePtr> load_object(std::string_view object, std::string_view entry, const std::string& name,
                                  const LaunchShape& launch = {});

}  // namespace kvjit::rt

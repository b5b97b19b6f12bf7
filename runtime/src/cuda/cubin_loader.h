// Loads cubins as Images.
#pragma once

#include <string>
#include <string_view>

#include "cuda/driver.h"
#include "images/image.h"

namespace kvjit::rt {

/// Image::entry() is a CUkernel: of no context, for any GPU that the code fits. `name` is for errors. Nothing remains
/// loaded after a failure, or after the image's end. `driver` is initialised and outlives the image. Errors:
/// KVJIT_BAD_FILE for bytes that are no whole cubin or have no such entry; KVJIT_CUDA_ERROR. Thread-safe.
gen::Result<ImagePtr> load_cubin(const Driver& driver, std::string_view cubin, std::string_view entry,
                                 const std::string& name, const LaunchShape& launch = {});

}  // namespace kvjit::rt

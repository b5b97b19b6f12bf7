// The formats of files that have a call: docs/semantics.md, section 9.
#pragma once

#include "result.h"
#include "safetensors.h"

namespace kvjit::tool {

enum class CaseFormat {
    kReference,  // recorded_call.h
    kRecording   // recording/recording.h
};

/// A file that doesn't say has the older one, if it has its fields at all. Errors: what the file says, and what it may
/// say.
Result<CaseFormat> case_format(const SafetensorsFile& file);
/// The same; another format than `expected` is an error, too.
Result<void> expect_format(const SafetensorsFile& file, CaseFormat expected);

}  // namespace kvjit::tool

// `kvjit inspect --diff`: what differs between two kernels' identities.
#pragma once

#include <string>

#include "inspect/show.h"
#include "result.h"

namespace kvjit::tool {

/// Whether an argument of --diff is a spec: "head_dim=64,group=4". One with a semicolon is identities, and a file goes
/// before a spec.
bool is_spec(const std::string& given);

/// Prints for each program what differs. `before` and `after` are each a spec, of which `options` tell target and
/// programs; identities as --emit identity prints them; a file of such text ("/dev/fd/63", say) or "-" for standard
/// input. Errors: either can't be read or parsed, or has no kernel.
Result<int> diff(const std::string& before, const std::string& after, const InspectOptions& options);

}  // namespace kvjit::tool

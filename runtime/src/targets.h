// Targets by name, interned: one object for each name, alive as long as the process, compared by address.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/target.h"

namespace kvjit::rt {

/// By a name that kvjit_target_create takes: what may serve it, best first. Of this machine's CPU and GPUs that is what
/// runs there, too; of a named level or architecture it alone. Errors: KVJIT_BAD_TARGET; for a GPU that can't be used,
/// KVJIT_CUDA_ERROR. Thread-safe.
gen::Result<const gen::TargetList*> find_targets(std::string_view name);

/// See kvjit_target_list.
struct TargetRow {
    std::string name;
    std::string help;
};
std::vector<TargetRow> target_rows();

}  // namespace kvjit::rt

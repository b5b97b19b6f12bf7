// Targets by name, interned: one object for each name, alive as long as the process, compared by address.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/target.h"

namespace kvjit::rt {

/// The targets that may serve a name of kvjit_target_create, best first: for this machine's CPU and GPUs also lesser
/// ones that run there; for a named level or architecture it alone. Errors: KVJIT_BAD_TARGET; KVJIT_CUDA_ERROR for an
/// unusable GPU. Thread-safe.
gen::Result<const gen::TargetList*> find_targets(std::string_view name);

/// See kvjit_target_list.
struct TargetRow {
    std::string name;
    std::string help;
};
std::vector<TargetRow> target_rows();

}  // namespace kvjit::rt

// Programs of a bundle that are almost the one asked for.
#pragma once

#include <string>

#include "bundle/bundle.h"
#include "generator/identity.h"

namespace kvjit::rt {

/// What the bundle has in the place of `wanted`: the same program for other targets of its kind, or from another
/// version of kvjit, as a clause: "has it for ...:x86-64-v2, for ...:x86-64-v3 of revision 4 (this library's is 5)".
/// Empty if nothing.
std::string near_programs(const Bundle& bundle, const gen::Identity& wanted);

}  // namespace kvjit::rt

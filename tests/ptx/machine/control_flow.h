// Where lanes that parted meet again.
#pragma once

#include "ptx/machine/kernel.h"

namespace kvjit::ptx {

/// Sets each branch's reconvergence: the first instruction that all ways from the branch to the kernel's end have in
/// common, its immediate post-dominator; kNowhere where that is the end alone.
void set_reconvergence(std::vector<Instruction>& instructions, Handler end);

}  // namespace kvjit::ptx

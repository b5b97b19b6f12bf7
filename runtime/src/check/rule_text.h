// What the rules of common/batch_rules.h find, as errors.
#pragma once

#include <string_view>

#include "common/abi.h"
#include "generator/error.h"
#include "generator/spec.h"

namespace kvjit::rt {

/// `remark` ends the sentence, in front of the levels that find it.
gen::Error rule_error(const abi::Finding& found, const gen::KernelSpec& spec, std::string_view remark = "");

}  // namespace kvjit::rt

// What the rules of common/batch_rules.h find, as errors.
#pragma once

#include <string_view>

#include "common/abi.h"
#include "generator/error.h"
#include "generator/spec.h"

namespace kvjit::rt {

/// What sentences need to know of the batch.
struct RuleWords {
    const gen::KernelSpec& spec;
    std::string_view keys;  // the argument that says how many keys there are
};

/// "kvstarts", "kvlens" or "last_page_len".
std::string_view keys_name(const abi::KeyCounts& keys);

/// `remark` ends the sentence, in front of the levels that find it.
gen::Error rule_error(const abi::Finding& found, const RuleWords& words, std::string_view remark = "");

}  // namespace kvjit::rt

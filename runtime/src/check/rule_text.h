// What the rules of common/batch_rules.h find, as errors.
#pragma once

#include <string_view>

#include "call/batch_view.h"
#include "common/abi.h"
#include "generator/error.h"
#include "generator/spec.h"

namespace kvjit::rt {

/// What sentences need to know of the batch.
struct RuleWords {
    const gen::KernelSpec& spec;
    std::string_view keys;           // the argument that says how many keys there are
    bool layer_tables, layer_slots;  // cachestarts and store_slots begin with an axis L
    std::int64_t layer = -1;         // whose table or slots were looked at; -1: those of all

    RuleWords of(std::int64_t a_layer) const { return {spec, keys, layer_tables, layer_slots, a_layer}; }
};

RuleWords rule_words(const BatchView& batch);

/// `remark` ends the sentence, in front of the levels that find it.
gen::Error rule_error(const abi::Finding& found, const RuleWords& words, std::string_view remark = "");

}  // namespace kvjit::rt

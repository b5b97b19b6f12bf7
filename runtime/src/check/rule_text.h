// Turns findings of the rules in common/batch_rules.h into errors.
#pragma once

#include <string_view>

#include "batch/batch_view.h"
#include "common/abi.h"
#include "generator/error.h"
#include "generator/spec.h"

namespace kvjit::rt {

/// What the sentences say of the batch.
struct RuleWords {
    const gen::KernelSpec& spec;
    std::string_view keys;           // the argument that gives the counts of keys
    bool layer_tables, layer_slots;  // cachestarts and store_slots begin with an axis L
    std::int64_t layer = -1;         // whose table or slots were checked; -1: those of all

    RuleWords of(std::int64_t a_layer) const { return {spec, keys, layer_tables, layer_slots, a_layer}; }
};

RuleWords rule_words(const BatchView& batch);

/// `remark` ends the sentence, before the check levels.
gen::Error rule_error(const abi::Finding& found, const RuleWords& words, std::string_view remark = "");

}  // namespace kvjit::rt

// Lists of specs as text, from which kernels are compiled ahead of time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "generator/error.h"
#include "generator/spec.h"

namespace kvjit::gen {

struct SpecList {
    struct Item {
        std::int64_t line;  // from 1 on
        KernelSpec spec;    // validated
    };
    /// An illegal combination of a line's values, for which no kernel exists.
    struct LeftOut {
        std::int64_t line;
        std::string combination;  // "head_dim=96,quant_bit=8,quant_group=64"
        Error reason;
    };
    std::vector<Item> specs;  // in the order of the text, each once
    std::vector<LeftOut> left_out;
};

/// See kvjit_spec_list_parse. Errors: KVJIT_BAD_SPEC, whose message begins with the line.
Result<SpecList> parse_spec_list(std::string_view text, std::int64_t max_combinations);

}  // namespace kvjit::gen

// Specs derived from others: the defaults, a spec for another operator, the two sides of a Relayout.
#include "generator/spec.h"

#include "spec_parts.h"

namespace kvjit::gen {
namespace {

constexpr std::string_view kDefaultLayout = "TL2HD";

/// The spec with its "auto" types resolved.
KernelSpec with_types(const KernelSpec& spec) {
    KernelSpec resolved = spec;
    if (!is_quantised(spec)) resolved.t2 = cache_type(spec);
    if (is_quantised(spec)) resolved.t3 = scale_type(spec);
    return resolved;
}

}  // namespace

KernelSpec default_spec() {
    KernelSpec spec{};
    spec.struct_size = sizeof spec;
    spec.op = KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION;
    spec.head_dim = 128;
    spec.group = 1;
    spec.t1 = KVJIT_F16;
    spec.quant_group = 8;
    spec.page_size = 128;
    spec.index_type = KVJIT_I64;
    spec.starts_type = KVJIT_I64;
    spec.is_causal = 1;
    set_text(spec.layout, kDefaultLayout);
    for (const Mirrored& field : kMirrored) spec.*field.to = KVJIT_SAME;
    return spec;
}

KernelSpec without_useless(const KernelSpec& spec) {
    const KernelSpec defaults = default_spec();
    KernelSpec reset = spec;
    // In two rounds: a field that the operator doesn't use may have decided that another field counts.
    for (int round = 0; round < 2; ++round) {
        for (const Field& row : spec_fields()) {
            if (!counts(row, reset)) row.parse(row.print(defaults), reset);
        }
    }
    return reset;
}

Result<KernelSpec> spec_for_op(const KernelSpec& spec, kvjit_op op) {
    KernelSpec reset = spec;
    reset.op = op;
    if (auto legal = check_legal(reset); !legal) return std::unexpected(legal.error());
    reset = without_useless(reset);
    if (auto valid = validate_spec(reset); !valid) return std::unexpected(valid.error());
    return reset;
}

Result<KernelSpec> relayout_spec(const KernelSpec& from, const KernelSpec& to) {
    for (const auto& [spec, name] : {std::pair(&from, "from"), std::pair(&to, "to")}) {
        if (auto valid = validate_spec(*spec); !valid) return std::unexpected(valid.error());
        if (!has_cache(*spec) || is_relayout(*spec))
            return fail(KVJIT_BAD_SPEC, name,
                        std::string(name) + " is of op " + std::string(operator_of(*spec).name) +
                            "; a relayout takes specs of KeyValueCache or MultiHeadCacheAttention");
    }
    for (const std::string_view name : {"head_dim", "starts_type"}) {
        const Field& row = *find_field(name);
        if (row.print(from) != row.print(to))
            return refuse(row, row.print(to), "from's is " + row.print(from) + ", which a relayout doesn't change",
                          number_of(row.print(to)), number_of(row.print(from)).value_or(0));
    }
    KernelSpec spec = default_spec();
    spec.op = KVJIT_OP_RELAYOUT;
    spec.head_dim = from.head_dim;
    spec.starts_type = from.starts_type;
    const std::int32_t types[] = {from.t1, to.t1, cache_type(from), cache_type(to)};
    const auto has = [&](kvjit_dtype type) { return std::ranges::count(types, type) != 0; };
    const bool wide = has(KVJIT_F32) || (has(KVJIT_F16) && has(KVJIT_BF16));  // neither of those holds the other
    spec.t1 = wide ? std::int32_t{KVJIT_F32} : from.t1;
    const KernelSpec source = with_types(from), destination = with_types(to);
    for (const Mirrored& field : kMirrored) {
        spec.*field.member = source.*field.member;
        if (destination.*field.member != source.*field.member) spec.*field.to = destination.*field.member;
    }
    set_text(spec.layout, layout_axes(from));
    set_text(spec.value_layout, text_of(from, &KernelSpec::value_layout));
    if (layout_axes(from) != layout_axes(to) || value_axes(from) != value_axes(to)) {
        set_text(spec.to_layout, layout_axes(to));
        set_text(spec.to_value_layout, text_of(to, &KernelSpec::value_layout));
    }
    spec = without_useless(spec);
    if (auto valid = validate_spec(spec); !valid) return std::unexpected(valid.error());
    return spec;
}

bool is_relayout(const KernelSpec& spec) {
    return spec.op == KVJIT_OP_RELAYOUT;
}

KernelSpec source_of(const KernelSpec& spec) {
    KernelSpec source = spec;
    for (const Mirrored& field : kMirrored) source.*field.to = KVJIT_SAME;
    set_text(source.to_layout, "");
    set_text(source.to_value_layout, "");
    return source;
}

KernelSpec destination_of(const KernelSpec& spec) {
    KernelSpec destination = source_of(spec);
    for (const Mirrored& field : kMirrored) {
        if (spec.*field.to != KVJIT_SAME) destination.*field.member = spec.*field.to;
    }
    // quant_bit decides what a quantised cache holds, and addresses have one type.
    if (destination.quant_bit != 0 && spec.to_t2 == KVJIT_SAME) destination.t2 = KVJIT_AUTO;
    if (!has_indices(destination) && spec.to_index_type == KVJIT_SAME) destination.index_type = KVJIT_I64;
    if (!text_of(spec, &KernelSpec::to_layout).empty()) {
        set_text(destination.layout, text_of(spec, &KernelSpec::to_layout));
        set_text(destination.value_layout, text_of(spec, &KernelSpec::to_value_layout));
    }
    return destination;
}

}  // namespace kvjit::gen

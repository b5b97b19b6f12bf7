// What a kernel computes, and lists of that. Part of kvjit.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kvjit/cpp/call.hpp"

namespace kvjit {

/// What a kernel computes. The fields are kvjit_spec's; the constructor fills in the defaults.
struct KernelSpec : kvjit_spec {
    KernelSpec() { kvjit_spec_init(this); }

    /// "op=MultiHeadCacheAttention,head_dim=128,group=4,layout=L2HTD,quant_bit=8". See kvjit_spec_parse.
    static Result<KernelSpec> parse(const std::string& text) {
        return detail::fill<KernelSpec>(kvjit_spec_parse, detail::Text{"text", text});
    }

    /// This spec for another op, without what means nothing there. See kvjit_spec_for_op.
    Result<KernelSpec> for_op(kvjit_op other) const { return detail::fill<KernelSpec>(kvjit_spec_for_op, this, other); }

    /// Of a relayout between caches of two specs. See kvjit_relayout_spec.
    static Result<KernelSpec> relayout(const kvjit_spec& from, const kvjit_spec& to) {
        return detail::fill<KernelSpec>(kvjit_relayout_spec, &from, &to);
    }

    /// The canonical text. Errors: KVJIT_BAD_SPEC.
    Result<std::string> text() const { return detail::text_of(kvjit_spec_print, this); }

    /// Sets the cache's axis order, "L2HTD" say. One of more than 15 characters is refused when the spec is used.
    KernelSpec& set_layout(const char* axes) {
        std::size_t i = 0;
        for (; i < sizeof layout && axes[i] != '\0'; ++i) layout[i] = axes[i];
        for (; i < sizeof layout; ++i) layout[i] = '\0';
        return *this;
    }
};

/// What a text with a spec a line stands for. See kvjit_spec_list_parse.
struct SpecList {
    /// A combination of values that is no legal spec.
    struct LeftOut {
        std::int64_t line;
        std::string combination;
        std::string reason;
    };
    std::vector<KernelSpec> specs;
    std::vector<LeftOut> left_out;

    static Result<SpecList> parse(const std::string& text, std::int64_t max_combinations = KVJIT_MAX_COMBINATIONS) {
        SpecList list;
        const auto take = [](void* to, std::int64_t, const kvjit_spec* spec) {
            KernelSpec taken;
            static_cast<kvjit_spec&>(taken) = *spec;
            static_cast<SpecList*>(to)->specs.push_back(taken);
        };
        const auto leave_out = [](void* to, std::int64_t line, const char* combination, const char* reason) {
            static_cast<SpecList*>(to)->left_out.push_back({line, combination, reason});
        };
        auto read =
            detail::call(kvjit_spec_list_parse, detail::Text{"text", text}, max_combinations, take, leave_out, &list);
        if (!read) return read.error();
        return list;
    }
};

/// What differs between two texts of KVJIT_STAGE_IDENTITY, in words. See kvjit_identity_diff.
inline Result<std::string> diff_identities(const std::string& before, const std::string& after) {
    return detail::text_of(kvjit_identity_diff, detail::Text{"before", before}, detail::Text{"after", after});
}

}  // namespace kvjit

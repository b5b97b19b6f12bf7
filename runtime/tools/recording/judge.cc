#include "recording/judge.h"

#include <algorithm>

#include "generator/operator.h"
#include "record/case_fields.h"
#include "safetensors.h"

namespace kvjit::tool {
namespace {

/// What the index of a cache tensor's last axis counts.
std::string element_name(const Recording& call, const std::string& name) {
    if (name.contains("scale")) return "group";
    return call.spec.quant_bit == 4 ? "pair of d" : "d";  // a byte has two codes
}

/// `element`: of the last axis.
std::string axis_name(char letter, bool in_blocks, const std::string& element) {
    switch (letter) {
        case 'N':
            return "block";
        case 'T':
            return in_blocks ? "token in its block" : "slot";
        case 't':
            return "slot in its piece";
        case 'L':
            return "layer";
        case '2':
            return "key or value";
        case 'H':
            return "kv head";
        case 'd':
            return "d in its piece";
        default:
            return element;
    }
}

std::vector<std::string> cache_axes(const Recording& call, const std::string& name) {
    const bool values = name.starts_with("value_");
    const bool in_blocks = gen::table_entries(call.spec) != abi::Entries::kTokens;
    std::vector<std::string> axes;
    if (name == record::kBlocks || name == record::kScaleBlocks) axes.emplace_back("block");
    const gen::Axes order = gen::axes_of(values ? gen::value_axes(call.spec) : gen::layout_axes(call.spec));
    for (const char letter : order.order()) {
        axes.push_back(axis_name(letter, in_blocks, element_name(call, name)));
    }
    return axes;
}

std::vector<std::string> axes_of(const Recording& call, const std::string& name) {
    if (name == "attn_output") return {"token", "head", "d"};
    if (name == "lse") return {"token", "head"};
    if (name == "key" || name == "value") return {"key", "head", "d"};
    return cache_axes(call, name);
}

bool is_close(const std::string& name) {
    return name == "attn_output" || name == "lse";
}

Verdict compare_one(const Recording& call, const Label& label, const Tensor& got, const Tensor& expected, bool bits) {
    if (!std::ranges::equal(got.shape(), expected.shape())) {
        return {false, 0,
                label.name + " has shape " + shape_text(got.shape()) + ", expected " + shape_text(expected.shape())};
    }
    if (is_close(label.name) && !bits) {
        return compare_closely(label, got, expected, tolerance(call.t1()), label.name == "lse" ? 1 : 0);
    }
    const Tensor same_type = expected.dtype() == got.dtype() ? expected.clone() : converted(expected, got.dtype());
    const bool numbers = got.dtype() == KVJIT_F32 || got.dtype() == KVJIT_F16 || got.dtype() == KVJIT_BF16;
    return numbers ? compare_exactly(label, got, same_type) : compare_bytes(label, got, same_type);
}

}  // namespace

Verdict judge(const Recording& call, const Results& got, const Results& expected, bool bits) {
    std::vector<std::int64_t> starts;
    for (std::int64_t b = 0; b <= call.batch_size(); ++b) starts.push_back(call.index("seqstarts", b));
    Verdict verdict;
    for (const auto& [name, tensor] : expected) {
        const auto found = got.find(name);
        if (found == got.end()) continue;
        verdict.join(compare_one(call, {name, axes_of(call, name), starts}, found->second, tensor, bits));
    }
    return verdict;
}

Results recorded_results(const Recording& call, const std::map<std::string, Tensor>& from) {
    Results results;
    for (const auto& [name, tensor] : from) results[name] = tensor.clone();
    if (call.stores() || from.empty()) return results;
    for (const char* name :
         {"cache", "scale", "key_cache", "value_cache", "key_scale", "value_scale", "blocks", "scale_blocks"}) {
        if (call.has(name)) results[name] = call.input(name).clone();
    }
    return results;
}

}  // namespace kvjit::tool

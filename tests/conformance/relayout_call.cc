#include "conformance/relayout_call.h"

#include <doctest/doctest.h>
#include <set>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "conformance/options.h"

namespace kvjit::test {
namespace {

std::size_t code_bytes(const kvjit_spec& spec) {
    return bytes_of(code_row(spec));
}

std::size_t scale_bytes(const kvjit_spec& spec) {
    return spec.quant_bit == 0 ? 0 : bytes_of(scale_row(spec));
}

/// A row as KeyValueCache returns it: rounded to T1.
std::vector<float> loaded(const kvjit_spec& spec, const CodeRow& from, int t1) {
    std::vector<float> row;
    if (spec.quant_bit != 0) row = dequantised(spec, from.scaled());
    for (std::int64_t d = 0; spec.quant_bit == 0 && d < spec.head_dim; ++d)
        row.push_back(static_cast<float>(read_element(from.codes, from.dtype, d)));
    std::byte rounded[8];
    for (float& x : row) {
        write_element(rounded, t1, 0, static_cast<double>(x));
        x = static_cast<float>(read_element(rounded, t1, 0));
    }
    return row;
}

void move_row(const kvjit_spec& from_spec, const CodeRow& from, const kvjit_spec& to_spec, const CodeRow& to, int t1) {
    if (are_alike(from_spec, to_spec)) {
        std::memmove(to.codes, from.codes, code_bytes(to_spec));
        if (to.scales != nullptr) std::memmove(to.scales, from.scales, scale_bytes(to_spec));
        return;
    }
    const std::vector<float> row = loaded(from_spec, from, t1);
    if (to_spec.quant_bit != 0) return quantise_row(to_spec, row, to.scaled());
    for (std::size_t d = 0; d < row.size(); ++d)
        write_element(to.codes, to.dtype, static_cast<std::int64_t>(d), static_cast<double>(row[d]));
}

/// All layers, keys, values and heads of one token.
void move_token(const RelayoutCall& call, std::size_t b, std::int64_t from, std::int64_t to, int t1) {
    const kvjit_spec &from_spec = call.from->which().spec, &to_spec = call.to->which().spec;
    for (std::int64_t layer = 0; layer < call.num_layers(); ++layer) {
        for (std::int64_t head = 0; head < call.num_kv_heads(); ++head) {
            for (const int part : {0, 1}) {
                const CodeRow source =
                    call.from->row(b, from, call.from_layer + layer, part, call.numbers.from_head + head);
                move_row(from_spec, source, to_spec,
                         call.to->row(b, to, call.to_layer + layer, part, call.numbers.to_head + head), t1);
            }
        }
    }
}

std::string text_of(const kvjit_spec& spec) {
    std::string text;
    kvjit_spec_print(
        &spec,
        [](void* context, const char* piece, size_t size) { static_cast<std::string*>(context)->append(piece, size); },
        &text, nullptr);
    return text;
}

std::string side_text(const Side& side) {
    const SideCase& which = side.which();
    std::string text = " heads=" + std::to_string(which.num_kv_heads) + " layers=" + std::to_string(which.num_layers) +
                       (which.layer_tables ? " a table a layer" : "") + (which.shares ? " shared" : "") +
                       " rows=" + std::to_string(static_cast<int>(which.rows)) +
                       " keys_by=" + std::to_string(static_cast<int>(which.keys_by)) +
                       " spread=" + std::to_string(static_cast<int>(which.spread)) + "," +
                       std::to_string(static_cast<int>(which.scale_spread)) +
                       " parts=" + std::to_string(static_cast<int>(which.parts)) + " past+fresh=";
    for (const Sequence& sequence : side.sequences())
        text += " " + std::to_string(sequence.past) + "+" + std::to_string(sequence.fresh);
    return text;
}

/// Of floats that the oracle has converted to NaN, any NaN will do: writes those of `expected` into `got`.
void settle_nans(std::vector<std::vector<std::byte>>& got, const std::vector<std::vector<std::byte>>& expected,
                 const std::vector<std::vector<std::byte>>& before, const std::vector<int>& dtypes) {
    for (std::size_t tensor = 0; tensor < got.size(); ++tensor) {
        const int dtype = dtypes[tensor];
        const std::size_t width = bytes_of(dtype);
        if (dtype == KVJIT_I8) continue;
        for (std::size_t at = 0; at + width <= got[tensor].size(); at += width) {
            std::byte* is = got[tensor].data() + at;
            const std::byte* want = expected[tensor].data() + at;
            const bool is_written = std::memcmp(want, before[tensor].data() + at, width) != 0;
            if (std::memcmp(is, want, width) == 0 || !is_written) continue;
            const bool both = std::isnan(read_element(is, dtype, 0)) && std::isnan(read_element(want, dtype, 0));
            if (both) std::memcpy(is, want, width);
        }
    }
}

/// The first bytes that differ.
std::string difference(const char* name, const std::vector<std::vector<std::byte>>& got,
                       const std::vector<std::vector<std::byte>>& expected) {
    for (std::size_t tensor = 0; tensor < got.size(); ++tensor) {
        const auto [g, e] = std::ranges::mismatch(got[tensor], expected[tensor]);
        if (g == got[tensor].end()) continue;
        return std::string(name) + ", tensor " + std::to_string(tensor) + ", byte " +
               std::to_string(g - got[tensor].begin()) + " of " + std::to_string(got[tensor].size()) + " is " +
               std::to_string(std::to_integer<int>(*g)) + ", not " + std::to_string(std::to_integer<int>(*e));
    }
    return "";
}

}  // namespace

std::int64_t RelayoutCall::num_kv_heads() const {
    return numbers.num_kv_heads != 0 ? numbers.num_kv_heads : from->which().num_kv_heads;
}

std::int64_t RelayoutCall::num_layers() const {
    return numbers.num_layers != 0 ? numbers.num_layers : from->which().num_layers;
}

std::vector<std::int64_t> positions_of(const Sequence& sequence, std::int64_t ranks, std::int64_t rank) {
    std::vector<std::int64_t> positions;
    for (std::int64_t j = sequence.past; j < sequence.keys(); ++j) {
        if (j % ranks == rank) positions.push_back(j);
    }
    return positions;
}

kvjit_spec relayout_spec_of(const kvjit_spec& from, const kvjit_spec& to) {
    kvjit_spec spec;
    kvjit_error error;
    kvjit_error_init(&error);
    REQUIRE_MESSAGE(kvjit_relayout_spec(&from, &to, &spec, &error) == KVJIT_OK, error.message);
    return spec;
}

bool are_alike(const kvjit_spec& from, const kvjit_spec& to) {
    if (from.quant_bit != to.quant_bit || code_row(from).dtype != code_row(to).dtype) return false;
    return from.quant_bit == 0 || (from.quant_group == to.quant_group && scale_row(from).dtype == scale_row(to).dtype);
}

void oracle_relayout(const RelayoutCall& call) {
    const kvjit_spec &from = call.from->which().spec, &to = call.to->which().spec;
    const std::set<int> types = {from.t1, to.t1, code_row(from).dtype, code_row(to).dtype};
    const bool wide = types.contains(KVJIT_F32) || (types.contains(KVJIT_F16) && types.contains(KVJIT_BF16));
    const int t1 = wide ? int{KVJIT_F32} : from.t1;
    for (std::size_t b = 0; b < call.from->sequences().size(); ++b) {
        const auto source = positions_of(call.from->sequences()[b], call.numbers.from_ranks, call.numbers.from_rank);
        const auto places = positions_of(call.to->sequences()[b], call.numbers.to_ranks, call.numbers.to_rank);
        REQUIRE(source.size() == places.size());
        for (std::size_t i = 0; i < source.size(); ++i) move_token(call, b, source[i], places[i], t1);
    }
}

RelayoutPlan::RelayoutPlan(const RelayoutCall& call)
    : executor_(std::make_shared<OrderedExecutor>(call.run.order, call.run.shuffle_seed)) {
    const kvjit_spec spec = relayout_spec_of(call.from->which().spec, call.to->which().spec);
    kvjit_error error;
    kvjit_error_init(&error);
    kvjit_kernel* kernel = nullptr;
    if (kvjit_engine_kernel(shared_engine(), &spec, chosen_target().get(), &kernel, &error) != KVJIT_OK) {
        error_ = error_text("kvjit_engine_kernel", error);
        return;
    }
    const kvjit_executor executor = executor_->view(call.run.threads);
    kvjit_plan_options chosen;
    kvjit_plan_options_init(&chosen);
    chosen.check_level = call.run.check_level;
    if (!options().on_cuda()) chosen.num_threads = call.run.threads;
    if (!options().on_cuda() && call.run.order != Order::kPool) chosen.executor = &executor;
    const kvjit_batch from = call.from->batch(), to = call.to->batch();
    kvjit_relayout relayout = call.numbers;
    relayout.from = &from;
    relayout.to = &to;
    kvjit_plan* plan = nullptr;
    if (kvjit_relayout_plan_create(kernel, &relayout, &chosen, &plan, &error) != KVJIT_OK)
        error_ = error_text("kvjit_relayout_plan_create", error);
    plan_.reset(plan);
    kvjit_kernel_release(kernel);
}

std::string RelayoutPlan::run(const RelayoutCall& call) const {
    if (!plan_) return error_;
    kvjit_error error;
    kvjit_error_init(&error);
    const kvjit_tensors from = call.from->cache().tensors(), to = call.to->cache().tensors();
    if (kvjit_relayout_run(plan_.get(), &from, call.from_layer, &to, call.to_layer, &error) != KVJIT_OK)
        return error_text("kvjit_relayout_run", error);
    if (kvjit_plan_synchronize(plan_.get(), &error) != KVJIT_OK) return error_text("kvjit_plan_synchronize", error);
    return "";
}

std::string RelayoutPlan::describe() const {
    std::string text;
    kvjit_plan_describe(
        plan_.get(),
        [](void* context, const char* piece, size_t size) { static_cast<std::string*>(context)->append(piece, size); },
        &text);
    return text;
}

std::string judge_relayout(const RelayoutCall& call) {
    SideCache &from = call.from->cache(), &to = call.to->cache();
    const auto read = from.snapshot(), before = to.snapshot();
    const std::string refused = RelayoutPlan(call).run(call);
    if (!refused.empty()) return refused;
    if (!from.is_fenced() || !to.is_fenced()) return "bytes around a cache have changed";
    const bool one_cache = &from == &to;
    if (const std::string changed = one_cache ? "" : difference("from", from.snapshot(), read); !changed.empty())
        return changed;
    const auto got = to.snapshot();
    to.restore(before);
    oracle_relayout(call);
    const auto expected = to.snapshot();
    to.restore(got);
    auto settled = got;
    const bool is_copied = are_alike(call.from->which().spec, call.to->which().spec);
    if (!is_copied) settle_nans(settled, expected, before, to.dtypes());
    return difference("to", settled, expected);
}

std::string describe(const RelayoutCall& call) {
    const kvjit_relayout& numbers = call.numbers;
    std::string text = text_of(relayout_spec_of(call.from->which().spec, call.to->which().spec));
    text += "\n    from" + side_text(*call.from) + "\n    to" + side_text(*call.to) + "\n    ranks ";
    for (const std::int64_t number : {numbers.from_ranks, numbers.from_rank, numbers.to_ranks, numbers.to_rank})
        text += std::to_string(number) + " ";
    text += "heads " + std::to_string(numbers.from_head) + " -> " + std::to_string(numbers.to_head) + " of " +
            std::to_string(numbers.num_kv_heads) + ", layers " + std::to_string(call.from_layer) + " -> " +
            std::to_string(call.to_layer) + " of " + std::to_string(numbers.num_layers);
    return text + ", threads=" + std::to_string(call.run.threads) +
           " order=" + std::to_string(static_cast<int>(call.run.order)) +
           " check_level=" + std::to_string(call.run.check_level);
}

}  // namespace kvjit::test

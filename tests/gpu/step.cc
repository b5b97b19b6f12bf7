#include "gpu/step.h"

#include <algorithm>
#include <utility>

#include "support/rng.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kLayers = 2;
constexpr std::byte kUnwritten{0xff};  // NaN in both float types

CallShape largest(const std::string& spec, StepLimits limits) {
    CallShape shape = even_shape(spec, limits.sequences, limits.new_tokens, limits.keys);
    shape.num_layers = kLayers;
    return shape;
}

/// A tensor like `other`, which may be larger than the call's own, with the same bytes.
kvjit_tensor clone_into(ApiCall& call, const kvjit_tensor& other) {
    if (other.rank == 0) return {};
    const kvjit_tensor clone = call.tensor(other.dtype, Numbers(other.shape, other.shape + other.rank));
    std::ranges::copy(bytes_of(other), bytes_of(clone).begin());
    return clone;
}

}  // namespace

Step::Step(Machine& machine, const std::string& spec, StepLimits limits)
    : machine_(machine),
      text_(spec),
      limits_(limits),
      call_(largest(spec, limits)),
      arrays_(machine),
      tensors_(machine) {
    call_.batch.max_seqlen = limits.new_tokens;
    call_.batch.max_kvlen = limits.keys;
    for (const kvjit_tensor* output : {&call_.tensors.attn_output, &call_.tensors.lse})
        std::ranges::fill(bytes_of(*output), kUnwritten);
    draw(1);
}

void Step::draw(std::uint64_t seed) {
    Rng rng(seed);
    draw_lengths(rng);
    call_.place_tokens(&rng);
    draw_inputs(call_.tensors, rng);
    upload_arrays();
    reset();
}

/// The first sequence is as long as may be; others may be empty.
void Step::draw_lengths(Rng& rng) {
    Numbers tokens = {limits_.new_tokens}, keys = {limits_.keys};
    for (std::int64_t b = 1; b < limits_.sequences; ++b) {
        tokens.push_back(rng.between(0, limits_.new_tokens));
        keys.push_back(rng.between(tokens.back(), limits_.keys));
    }
    call_.set_lengths(tokens, keys);
}

void Step::upload_arrays() {
    call_.bind([this, array = std::size_t{0}](const void* data, std::size_t bytes) mutable {
        return arrays_.put(array++, data, bytes);
    });
    batch_ = call_.batch;
    call_.bind();
}

void Step::reset() {
    for (std::size_t i = 0; i < call_.pieces().size(); ++i)
        tensors_.put(i, call_.pieces()[i].data(), call_.pieces()[i].size());
}

std::int64_t Step::set_entry(std::int64_t b, std::int64_t p, std::int64_t entry) {
    const std::int64_t at = b * call_.batch.cachestarts.shape[1] + p;
    const std::int64_t before = std::exchange(call_.table[static_cast<std::size_t>(at)], entry);
    upload_arrays();
    return before;
}

std::span<const std::byte> Step::rows_in(const kvjit_tensor& tensor, std::span<const std::byte> bytes,
                                         std::int64_t b) const {
    const std::size_t row = bytes.size() / static_cast<std::size_t>(tensor.shape[0]);
    const auto first = static_cast<std::size_t>(call_.seqstarts[static_cast<std::size_t>(b)]);
    return bytes.subspan(first * row, static_cast<std::size_t>(call_.tokens(b)) * row);
}

std::unique_ptr<Step> Step::alone(std::int64_t b) const {
    auto step = std::make_unique<Step>(machine_, text_, StepLimits{1, limits_.new_tokens, limits_.keys});
    ApiCall& other = step->call_;
    other.set_lengths({call_.tokens(b)}, {call_.keys(b)});
    const std::int64_t columns = call_.batch.cachestarts.shape[1];
    const auto row = call_.table.begin() + b * columns;
    other.set_table(Numbers(row, row + columns), {1, columns});
    other.batch.max_tokens = call_.batch.max_tokens;
    other.batch.num_blocks = call_.batch.num_blocks;
    for (const auto member : {&kvjit_tensors::cache, &kvjit_tensors::scale})
        other.tensors.*member = clone_into(other, call_.tensors.*member);
    for (const auto member : {&kvjit_tensors::query, &kvjit_tensors::current_key, &kvjit_tensors::current_value}) {
        const kvjit_tensor& tensor = call_.tensors.*member;
        std::ranges::copy(rows_in(tensor, bytes_of(tensor), b), bytes_of(other.tensors.*member).begin());
    }
    step->upload_arrays();
    step->reset();
    return step;
}

}  // namespace kvjit::test

// Views of containers: their types, and what is said of a length that doesn't fit.
#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "kvjit/blocks.hpp"
#include "step.h"

/// A 16-bit type of an engine's own.
struct EngineHalf {
    std::uint16_t bits;
};
template <>
inline constexpr kvjit_dtype kvjit::dtype_of<EngineHalf> = KVJIT_F16;

namespace {

using kvjit::Tensor;
using kvjit::test::Step;

/// As std::span, which C++17 lacks.
template <class T>
struct Span {
    T* first;
    std::size_t count;
    T* data() const { return first; }
    std::size_t size() const { return count; }
};

// Temporaries would end before the view does.
static_assert(std::is_constructible_v<Tensor, std::vector<float>&> &&
              std::is_constructible_v<Tensor, const std::vector<float>&, std::vector<std::int64_t>&>);
static_assert(!std::is_constructible_v<Tensor, std::vector<float>> &&
              !std::is_constructible_v<Tensor, const std::vector<float>>);
static_assert(!std::is_constructible_v<Tensor, std::vector<float>, std::vector<std::int64_t>&> &&
              !std::is_constructible_v<Tensor, const std::array<float, 2>, std::vector<std::int64_t>&>);
static_assert(!std::is_constructible_v<kvjit::Indices, std::vector<std::int64_t>> &&
              !std::is_constructible_v<kvjit::Indices, const std::vector<std::int64_t>>);
static_assert(!std::is_convertible_v<std::vector<float>&, Tensor>, "a view is asked for");

void check_view(const Tensor& view, const void* data, kvjit_dtype type, std::vector<std::int64_t> shape) {
    CHECK(view.data == data);
    CHECK(view.dtype == type);
    CHECK(std::vector<std::int64_t>(view.shape, view.shape + view.rank) == shape);
    CHECK(view.strides[view.rank - 1] == 1);
    CHECK((view.reserved[0] == 0 && view.reserved[1] == 0));
}

template <class Result>
void check_refused(const Result& result, const char* argument, std::int64_t value, std::int64_t limit) {
    REQUIRE(!result);
    INFO(std::string(result.error().message()));
    CHECK(result.error().status() == KVJIT_BAD_SHAPE);
    CHECK(result.error().argument() == std::string(argument));
    CHECK(result.error().value() == value);
    CHECK(result.error().limit() == limit);
    CHECK(std::string(result.error().message()).rfind(argument + std::string(" is a container of "), 0) == 0);
}

}  // namespace

TEST_CASE("the type of a view is its container's elements'") {
    std::vector<float> floats(6);
    check_view(Tensor(floats, {2, 3}), floats.data(), KVJIT_F32, {2, 3});
    check_view(Tensor(floats), floats.data(), KVJIT_F32, {6});
    const std::vector<std::int64_t> shape{3, 1, 2};
    check_view(Tensor(floats, shape), floats.data(), KVJIT_F32, shape);
    check_view(Tensor(floats, {floats.size() / 2, std::size_t{2}}), floats.data(), KVJIT_F32, {3, 2});
    std::array<std::int8_t, 4> codes{};
    check_view(Tensor(codes, {2, 2}), codes.data(), KVJIT_I8, {2, 2});
    const std::int32_t table[] = {1, 2, 3};
    check_view(Tensor(table, {1, 3}), table, KVJIT_I32, {1, 3});
    std::vector<std::byte> nibbles(8);
    check_view(Tensor(nibbles, {8, 1}), nibbles.data(), KVJIT_U8, {8, 1});
    std::vector<EngineHalf> own(5);
    const Span<const EngineHalf> span{own.data(), 4};
    check_view(Tensor(span, {4}), own.data(), KVJIT_F16, {4});
    const std::vector<std::int64_t> none;
    check_view(Tensor(none, {3, 0}), none.data(), KVJIT_I64, {3, 0});
#if defined(__FLT16_MANT_DIG__)
    const std::vector<_Float16> halves(2);
    check_view(Tensor(halves, {2, 1}), halves.data(), KVJIT_F16, {2, 1});
    std::vector<kvjit::bfloat16> brains(3);
    check_view(Tensor(brains, {3}), brains.data(), KVJIT_BF16, {3});
#endif
}

TEST_CASE("a view without memory is a literal nullptr's, too") {
    const Tensor empty(nullptr, KVJIT_F16, {0, 8});
    check_view(empty, nullptr, KVJIT_F16, {0, 8});
    Step step;
    auto plan = Step::kernel().plan(step.batch);
    step.tensors.query = Tensor(nullptr, KVJIT_F16, {1, 2, 8});
    CHECK(plan->run(step.tensors).error().argument() == std::string("query.data"));
}

TEST_CASE("a step runs on views of containers") {
    Step step;
    auto plan = Step::kernel().plan(step.batch);
    REQUIRE(plan);
    REQUIRE(plan->run(step.tensors));
    CHECK(step.cache[(32 + 2 + 16) * 8] == 3);  // of the values: page 16, its third token
    CHECK(step.output[0] > 0.9F);               // two keys of zeros besides
}

TEST_CASE("a run refuses a view that its container doesn't fit") {
    Step step;
    auto plan = Step::kernel().plan(step.batch);
    REQUIRE(plan);
    const std::vector<kvjit::half> few(15), many(17);
    step.tensors.query = Tensor(few, {1, 2, 8});
    check_refused(plan->run(step.tensors), "query", 15, 16);
    step.tensors.query = Tensor(many, {1, 2, 8});
    check_refused(plan->run(step.tensors), "query", 17, 16);
    kvjit::Error error;
    CHECK(kvjit_run(plan->get(), &step.tensors, 0, error.get()) == KVJIT_BAD_ARGUMENT);
    step.tensors.query = Tensor(step.query, {1, 2, 8});
    const std::vector<float> none;
    step.tensors.lse = Tensor(none, {1, 2});  // optional, but given
    check_refused(plan->run(step.tensors), "lse", 0, 2);
    CHECK(step.output[0] == 0);
}

TEST_CASE("extents whose product has no number fit no container") {
    Step step;
    auto plan = Step::kernel().plan(step.batch);
    REQUIRE(plan);
    constexpr std::int64_t kLarge = std::int64_t{1} << 32, kMost = std::numeric_limits<std::int64_t>::max();
    step.tensors.query = Tensor(step.query, {kLarge, kLarge, 16});
    check_refused(plan->run(step.tensors), "query", 16, kMost);
    check_view(Tensor(std::as_const(step.lse), {2}), step.lse.data(), KVJIT_F32, {2});
    const std::vector<float> none;
    check_view(Tensor(none, {kLarge, kLarge, 0}), none.data(), KVJIT_F32, {kLarge, kLarge, 0});
}

TEST_CASE("more axes than a tensor has are refused, not absent") {
    Step step;
    auto plan = Step::kernel().plan(step.batch);
    REQUIRE(plan);
    step.tensors.lse = Tensor(step.lse, {1, 1, 1, 1, 1, 1, 1, 1, 2});
    CHECK(plan->run(step.tensors).error().argument() == std::string("lse.rank"));
    step.tensors.lse = Tensor(step.lse.data(), KVJIT_F32, {1, 1, 1, 1, 1, 1, 1, 1, 2});
    CHECK(plan->run(step.tensors).error().value() == 9);
    const std::vector<std::int64_t> twelve(12, 1);
    step.tensors.lse = Tensor(step.lse, twelve);
    CHECK(plan->run(step.tensors).error().value() == 12);
}

TEST_CASE("a plan refuses a table that its container doesn't fit, a relayout on either side") {
    Step step;
    step.batch.cachestarts = Tensor(step.pages, {1, 3});
    check_refused(Step::kernel().plan(step.batch), "cachestarts", 2, 3);
    const auto spec = kvjit::KernelSpec::parse(Step::kSpec).value();
    auto relayout = kvjit::Engine::create()->kernel(kvjit::KernelSpec::relayout(spec, spec).value());
    REQUIRE(relayout);
    Step whole;
    check_refused(relayout->plan(kvjit::Relayout(step.batch, whole.batch)), "from.cachestarts", 2, 3);
    check_refused(relayout->plan(kvjit::Relayout(whole.batch, step.batch)), "to.cachestarts", 2, 3);
    auto plan = relayout->plan(kvjit::Relayout(whole.batch, whole.batch));
    REQUIRE(plan);
    kvjit::Tensors from, to;
    from.cache = whole.tensors.cache;
    to.cache = Tensor(step.cache, {1, 2, 1, 32, 9});
    check_refused(plan->relayout(from, to), "to.cache", 512, 576);
}

TEST_CASE("blocks refuse a cache that its container doesn't fit") {
    Step step, other;
    const auto spec =
        kvjit::KernelSpec::parse("op=KeyValueCache,head_dim=8,cache_mode=page_table,page_size=16,layout=L2HTD");
    other.tensors.cache = Tensor(other.cache, {2, 2, 1, 32, 8});
    const std::vector<std::int64_t> ids{0};
    const kvjit::Blocks from(*spec, step.batch, step.tensors), to(*spec, other.batch, other.tensors);
    const auto copied = kvjit::copy_blocks(from, to, ids.data(), ids.data(), 1);
    check_refused(copied, "to.tensors.cache", 512, 1024);
}

TEST_CASE("a misfit whose extents are mended afterwards is refused with what to do") {
    Step step;
    auto plan = Step::kernel().plan(step.batch);
    REQUIRE(plan);
    step.tensors.query = Tensor(step.query, {1, 2, 9});
    step.tensors.query.shape[2] = 8;
    const auto refused = plan->run(step.tensors);
    REQUIRE(!refused);
    CHECK(refused.error().argument() == std::string("query.reserved"));
    CHECK(refused.error().value() == 16);
    const std::string message = refused.error().message();
    CHECK(message.find("assign a new one, of a container and extents that fit") != message.npos);
    step.tensors.query = Tensor(step.query, {1, 2, 8});
    CHECK(plan->run(step.tensors));
}

TEST_CASE("a relayout's mended misfit is told by its own numbers, whatever the other side has") {
    const auto spec = kvjit::KernelSpec::parse(Step::kSpec).value();
    const auto kernel = kvjit::Engine::create()->kernel(kvjit::KernelSpec::relayout(spec, spec).value()).value();
    Step from, to;
    from.batch.cachestarts = Tensor(from.pages, {1, 3});
    from.batch.cachestarts.shape[1] = 2;
    to.batch.cachestarts = Tensor(to.pages, {1, 4});
    const auto refused = kernel.plan(kvjit::Relayout(from.batch, to.batch));
    REQUIRE(!refused);
    CHECK(refused.error().argument() == std::string("from.cachestarts.reserved"));
    CHECK(refused.error().status() == KVJIT_BAD_ARGUMENT);
}

TEST_CASE("reserved words of somebody else's are told as they are") {
    Step step;
    auto plan = Step::kernel().plan(step.batch);
    REQUIRE(plan);
    step.tensors.query.reserved[1] = 7;
    CHECK(plan->run(step.tensors).error().argument() == std::string("query.reserved"));
}

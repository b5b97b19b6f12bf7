// Relayouts from and to layouts that cut rows or pages into pieces: where an element lies is computed from the letters
// here, by nothing that the library has a part in.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "call/call.h"
#include "call/oracle.h"
#include "conformance/options.h"
#include "kvjit/kvjit.hpp"
#include "support/rng.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kLayers = 2, kHeads = 3, kDim = 40, kPage = 12, kBlocks = 7;
constexpr std::int64_t kTokens[] = {30, 1, 17};  // of each sequence

/// A tensor of a layout's axes.
class Cut {
public:
    Cut(const std::string& layout, kvjit_dtype type) : axes_(layout_axes(layout)) {
        kvjit_spec spec{};
        spec.cache_mode = KVJIT_BLOCK_TABLE;
        spec.page_size = kPage;
        kvjit_batch extents{};
        extents.num_blocks = kBlocks;
        extents.num_layers = kLayers;
        extents.num_kv_heads = kHeads;
        tensor_ = dense_tensor(nullptr, type, cache_shape(spec, extents, layout, kDim));
        bytes_.resize(bytes_of(tensor_).size());
    }

    std::int64_t size() const { return static_cast<std::int64_t>(bytes_of(tensor_.dtype)); }
    bool has(char letter) const { return std::ranges::find(axes_, letter, &LayoutAxis::name) != axes_.end(); }
    unsigned char* at(const CacheElement& e) { return bytes_.data() + offset_of(e, axes_, tensor_.strides) * size(); }
    kvjit_tensor tensor() {
        kvjit_tensor tensor = tensor_;
        tensor.data = bytes_.data();
        return tensor;
    }
    std::vector<unsigned char>& bytes() { return bytes_; }

private:
    std::vector<LayoutAxis> axes_;
    kvjit_tensor tensor_;  // without its memory
    std::vector<unsigned char> bytes_;
};

/// A cache of blocks, in one tensor or two, and a table of three sequences.
class Side {
public:
    Side(const std::string& keys, const std::string& values, kvjit_dtype type, Rng& rng)
        : keys_(keys, type), values_(values, type) {
        for (unsigned char& byte : keys_.bytes()) byte = static_cast<unsigned char>(rng.next());
        for (unsigned char& byte : values_.bytes()) byte = static_cast<unsigned char>(rng.next());
        Numbers free(kBlocks);
        std::iota(free.begin(), free.end(), 0);
        rng.shuffle(free);
        table_.assign(3 * 3, -1);
        std::size_t taken = 0;
        for (std::size_t b = 0; b < 3; ++b) {
            for (std::int64_t p = 0; p * kPage < kTokens[b]; ++p)
                table_[b * 3 + static_cast<std::size_t>(p)] = free[taken++];
        }
    }

    bool apart() const { return !keys_.has('2'); }
    unsigned char* at(std::size_t b, std::int64_t position, std::int64_t layer, std::int64_t part, std::int64_t head,
                      std::int64_t d) {
        const std::int64_t block = table_[b * 3 + static_cast<std::size_t>(position / kPage)];
        Cut& cut = apart() && part == 1 ? values_ : keys_;
        return cut.at({block, position % kPage, layer, part, head, d});
    }
    Batch batch() {
        Batch batch;
        batch.batch_size = 3;
        batch.num_kv_heads = kHeads;
        batch.num_layers = keys_.has('L') ? kLayers : 1;
        batch.num_blocks = kBlocks;
        batch.seqstarts = batch.kvstarts = starts_;
        batch.cachestarts = Tensor(table_.data(), KVJIT_I64, {3, 3});
        return batch;
    }
    Tensors tensors() {
        Tensors tensors;
        static_cast<kvjit_tensor&>(apart() ? tensors.key_cache : tensors.cache) = keys_.tensor();
        if (apart()) tensors.value_cache = values_.tensor();
        return tensors;
    }
    std::vector<unsigned char> bytes() {
        std::vector<unsigned char> all = keys_.bytes();
        if (apart()) all.insert(all.end(), values_.bytes().begin(), values_.bytes().end());
        return all;
    }
    std::int64_t layers() const { return keys_.has('L') ? kLayers : 1; }
    std::int64_t size() const { return keys_.size(); }

private:
    Cut keys_, values_;
    std::vector<std::int64_t> table_;
    std::int64_t starts_[4] = {0, kTokens[0], kTokens[0] + kTokens[1], kTokens[0] + kTokens[1] + kTokens[2]};
};

struct Layout {
    const char *keys, *values;  // values: where they lie apart
    std::string text(const std::string& to) const {
        return to + "layout=" + keys + (values[0] != '\0' ? "," + to + "value_layout=" + values : "");
    }
    const char* of_values() const { return values[0] != '\0' ? values : keys; }
};
constexpr Layout kLayouts[] = {
    {"NHDTd8", "NHDT"},    {"NTHD", ""},   {"NHTD", "NTHD"},  {"N2LTHD", ""}, {"N2LHDTd8", ""}, {"NLHDT", "NLTHt4D"},
    {"NHDTd5", "NTHDd10"}, {"LN2HTD", ""}, {"NTHDt6d20", ""}, {"THD2LN", ""}, {"NLTHD2", ""},
};

/// Copies one layer, from `layer` to `to_layer`, and compares all bytes of the destination.
void check_move(const Layout& from, const Layout& to, kvjit_dtype type, const char* name, std::uint64_t seed) {
    CAPTURE(from.text(""));
    CAPTURE(to.text(""));
    CAPTURE(name);
    CAPTURE(seed);
    Rng rng(seed);
    Side source(from.keys, from.of_values(), type, rng), destination(to.keys, to.of_values(), type, rng);
    Side expected = destination;
    const std::int64_t from_layer = rng.below(source.layers()), to_layer = rng.below(destination.layers());
    for (std::size_t b = 0; b < 3; ++b) {
        for (std::int64_t t = 0; t < kTokens[b]; ++t) {
            for (std::int64_t i = 0; i < 2 * kHeads * kDim; ++i) {
                const std::int64_t part = i / (kHeads * kDim), head = i / kDim % kHeads, d = i % kDim;
                std::memcpy(expected.at(b, t, to_layer, part, head, d), source.at(b, t, from_layer, part, head, d),
                            static_cast<std::size_t>(source.size()));
            }
        }
    }
    static const Engine engine = *Engine::create();
    const auto target = Target::cpu(options().target);
    REQUIRE(target.has_value());
    const auto spec =
        KernelSpec::parse("op=Relayout,head_dim=40,page_size=12,cache_mode=block_table,t1=" + std::string(name) + "," +
                          from.text("") + "," + to.text("to_"));
    REQUIRE_MESSAGE(spec.has_value(), spec.error().message());
    const auto kernel = engine.kernel(*spec, *target);
    REQUIRE_MESSAGE(kernel.has_value(), kernel.error().message());
    const Batch read = source.batch(), written = destination.batch();
    Relayout relayout(read, written);
    relayout.num_layers = 1;
    auto plan = kernel->plan(relayout);
    REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
    const auto ran = plan->relayout(source.tensors(), destination.tensors(), from_layer, to_layer);
    REQUIRE_MESSAGE(ran.has_value(), ran.error().message());
    REQUIRE(plan->synchronize().has_value());
    CHECK(destination.bytes() == expected.bytes());
}

TEST_CASE("relayouts between layouts that cut rows or pages keep all bytes") {
    if (options().on_gpu()) {
        MESSAGE("skipped: a GPU does not reach this memory");
        return;
    }
    std::uint64_t seed = options().seed;
    int k = 0;
    for (const Layout& from : kLayouts) {
        for (const Layout& to : kLayouts) {
            const auto [type, name] = k % 3 == 0   ? std::pair(KVJIT_F16, "f16")
                                      : k % 3 == 1 ? std::pair(KVJIT_F32, "f32")
                                                   : std::pair(KVJIT_I8, "i8");
            ++k;
            check_move(from, to, type, name, ++seed);
        }
    }
}

/// What a relayout with `fields` makes of a source that holds `bytes`.
Side converted(const std::string& fields, const Layout& from, const Layout& to, Side& source, kvjit_dtype type,
               kvjit_tensor scale) {
    Rng rng(7);
    Side destination(to.keys, to.of_values(), type, rng);
    static const Engine engine = *Engine::create();
    const auto spec = KernelSpec::parse("op=Relayout,head_dim=40,page_size=12,cache_mode=block_table," + fields + "," +
                                        from.text("") + "," + to.text("to_"));
    REQUIRE_MESSAGE(spec.has_value(), spec.error().message());
    const auto kernel = engine.kernel(*spec, *Target::cpu(options().target));
    REQUIRE_MESSAGE(kernel.has_value(), kernel.error().message());
    const Batch read = source.batch(), written = destination.batch();
    auto plan = kernel->plan(Relayout(read, written));
    REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
    Tensors tensors = source.tensors();
    static_cast<kvjit_tensor&>(tensors.scale) = scale;
    const auto ran = plan->relayout(tensors, destination.tensors());
    REQUIRE_MESSAGE(ran.has_value(), ran.error().message());
    REQUIRE(plan->synchronize().has_value());
    return destination;
}

TEST_CASE("what a relayout makes of numbers is the same in pieces as in whole rows") {
    if (options().on_gpu()) {
        MESSAGE("skipped: a GPU does not reach this memory");
        return;
    }
    const Layout whole = {"N2THD", ""}, rocm = {"NHDTd8", "NHDT"};
    struct Change {
        const char* fields;
        kvjit_dtype from, to;
    };
    for (const Change& change : {Change{"t1=f16,quant_bit=8,to_quant_bit=0", KVJIT_I8, KVJIT_F16},
                                 Change{"t1=f32,t2=f16,to_t2=f32", KVJIT_F16, KVJIT_F32},
                                 Change{"t1=f16,t2=f32,to_t2=f16", KVJIT_F32, KVJIT_F16}}) {
        CAPTURE(change.fields);
        Rng rng(11);
        Side source(whole.keys, whole.keys, change.from, rng);
        std::vector<std::uint16_t> scales(static_cast<std::size_t>(kBlocks * 2 * kPage * kHeads * kDim / 8), 0x2c00);
        const std::int64_t shape[] = {kBlocks, 2, kPage, kHeads, kDim / 8};
        const kvjit_tensor scale =
            change.from == KVJIT_I8 ? kvjit_tensor_contiguous(scales.data(), KVJIT_F16, 5, shape) : kvjit_tensor{};
        Side rows = converted(change.fields, whole, {"NTHD", ""}, source, change.to, scale);
        Side pieces = converted(change.fields, whole, rocm, source, change.to, scale);
        int wrong = 0;
        for (std::size_t b = 0; b < 3; ++b) {
            for (std::int64_t t = 0; t < kTokens[b]; ++t) {
                for (std::int64_t i = 0; i < 2 * kHeads * kDim; ++i) {
                    const std::int64_t part = i / (kHeads * kDim), head = i / kDim % kHeads, d = i % kDim;
                    wrong += std::memcmp(rows.at(b, t, 0, part, head, d), pieces.at(b, t, 0, part, head, d),
                                         static_cast<std::size_t>(rows.size())) != 0;
                }
            }
        }
        CHECK(wrong == 0);
    }
}

}  // namespace
}  // namespace kvjit::test

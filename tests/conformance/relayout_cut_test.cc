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
#include "conformance/run_call.h"
#include "kvjit/kvjit.hpp"
#include "support/guarded_buffer.h"
#include "support/rng.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kLayers = 2, kHeads = 3, kDim = 40, kPage = 12, kBlocks = 7, kValuePad = 24;
constexpr std::int64_t kTokens[] = {30, 1, 17};  // of each sequence

/// Bytes that a GPU reaches, too, and that end at a page which can't be touched (but for up to 15 bytes).
class Memory {
public:
    explicit Memory(std::int64_t size)
        : size_(static_cast<std::size_t>(size)), buffer_((size_ + 15) / 16 * 16, Guard::kAfter) {}
    Memory(const Memory& other) : Memory(static_cast<std::int64_t>(other.size_)) {
        std::memcpy(data(), other.buffer_.data(), size_);
    }
    Memory(Memory&&) = default;
    Memory& operator=(Memory&&) = default;
    ~Memory() = default;

    unsigned char* data() { return reinterpret_cast<unsigned char*>(buffer_.data()); }
    std::size_t size() const { return size_; }
    unsigned char* begin() { return data(); }
    unsigned char* end() { return data() + size_; }

private:
    std::size_t size_;
    GuardedBuffer buffer_;
};

/// A tensor of a layout's axes.
class Cut {
public:
    /// `pad`: elements between the parts of the first axis.
    Cut(const std::string& layout, kvjit_dtype type, std::int64_t pad = 0) : axes_(layout_axes(layout)) {
        kvjit_spec spec{};
        spec.cache_mode = KVJIT_BLOCK_TABLE;
        spec.page_size = kPage;
        kvjit_batch extents{};
        extents.num_blocks = kBlocks;
        extents.num_layers = kLayers;
        extents.num_kv_heads = kHeads;
        tensor_ = dense_tensor(nullptr, type, cache_shape(spec, extents, layout, kDim));
        tensor_.strides[0] += pad;
        std::int64_t last = 0;
        for (std::int32_t axis = 0; axis < tensor_.rank; ++axis)
            last += (tensor_.shape[axis] - 1) * tensor_.strides[axis];
        bytes_ = Memory((last + 1) * size());
    }

    std::int64_t size() const { return static_cast<std::int64_t>(bytes_of(tensor_.dtype)); }
    bool has(char letter) const { return std::ranges::find(axes_, letter, &LayoutAxis::name) != axes_.end(); }
    unsigned char* at(const CacheElement& e) { return bytes_.data() + offset_of(e, axes_, tensor_.strides) * size(); }
    kvjit_tensor tensor() {
        kvjit_tensor tensor = tensor_;
        tensor.data = bytes_.data();
        return tensor;
    }
    Memory& bytes() { return bytes_; }

private:
    std::vector<LayoutAxis> axes_;
    kvjit_tensor tensor_;  // without its memory
    Memory bytes_{0};
};

struct Layout {
    const char *keys, *values;  // values: where they lie apart
    std::string text(const std::string& to) const {
        return to + "layout=" + keys + (values[0] != '\0' ? "," + to + "value_layout=" + values : "");
    }
    const char* of_values() const { return values[0] != '\0' ? values : keys; }
};
constexpr Layout kRows = {"NTHD", ""}, kCodes = {"N2THD", ""}, kPieces = {"NHDTd8", "NHDT"};

/// A cache of blocks, in one tensor or two, and a table of three sequences, or such a table a layer.
class Side {
public:
    Side(const Layout& layout, kvjit_dtype type, Rng& rng)
        : layout_(layout), keys_(layout.keys, type), values_(layout.of_values(), type, kValuePad) {
        for (unsigned char& byte : keys_.bytes()) byte = static_cast<unsigned char>(rng.next());
        for (unsigned char& byte : values_.bytes()) byte = static_cast<unsigned char>(rng.next());
        add_table(rng);
    }

    /// Scales of 8 codes each, where the layout is kCodes.
    void add_scales(Rng& rng) {
        const std::int64_t count = kBlocks * 2 * kPage * kHeads * kDim / 8;
        scales_ = Memory(count * 2);
        for (std::int64_t i = 0; i < count; ++i) {
            const auto scale = static_cast<std::uint16_t>(0x2c00 + rng.below(512));
            std::memcpy(scales_.data() + 2 * i, &scale, sizeof scale);
        }
    }
    /// Where the layout has layers: another table for each but the first.
    void add_tables(Rng& rng) {
        for (std::int64_t layer = 1; layer < layers(); ++layer) add_table(rng);
    }

    /// Where the layout begins with N: blocks, and those of the scales, are found by their addresses.
    void give_addresses() { by_address_ = true; }

    /// The side's fields of a spec; `to`: "to_" for the destination.
    std::string fields(const std::string& to) const {
        if (!by_address_) return to + "cache_mode=block_table," + layout_.text(to);
        return to + "cache_mode=block_pointers," + to + "layout=" + (layout_.keys + 1);
    }
    bool apart() const { return !keys_.has('2'); }
    unsigned char* at(std::size_t b, std::int64_t position, std::int64_t layer, std::int64_t part, std::int64_t head,
                      std::int64_t d) {
        const Numbers& table = tables_[tables_.size() > 1 ? static_cast<std::size_t>(layer) : 0];
        const std::int64_t block = table[b * 3 + static_cast<std::size_t>(position / kPage)];
        Cut& cut = apart() && part == 1 ? values_ : keys_;
        return cut.at({block, position % kPage, layer, part, head, d});
    }
    Batch batch() {
        Batch batch;
        batch.batch_size = 3;
        batch.num_kv_heads = kHeads;
        batch.num_layers = keys_.has('L') ? kLayers : 1;
        batch.num_blocks = by_address_ ? 0 : kBlocks;
        batch.seqstarts = batch.kvstarts = starts_;
        entries_.clear();
        for (const Numbers& table : tables_) entries_.insert(entries_.end(), table.begin(), table.end());
        if (by_address_) {
            scale_entries_ = addresses(scales_);
            entries_ = addresses(keys_.bytes());
            batch.scalestarts = Tensor(scale_entries_.data(), KVJIT_I64, {3, 3});
        }
        batch.cachestarts = tables_.size() > 1 ? Tensor(entries_.data(), KVJIT_I64, {layers(), 3, 3})
                                               : Tensor(entries_.data(), KVJIT_I64, {3, 3});
        return batch;
    }
    Tensors tensors() {
        Tensors tensors;
        if (by_address_) return tensors;
        (apart() ? tensors.key_cache : tensors.cache) = keys_.tensor();
        if (apart()) tensors.value_cache = values_.tensor();
        const std::int64_t shape[] = {kBlocks, 2, kPage, kHeads, kDim / 8};
        if (scales_.size() != 0) tensors.scale = kvjit_tensor_contiguous(scales_.data(), KVJIT_F16, 5, shape);
        return tensors;
    }
    std::vector<unsigned char> bytes() {
        std::vector<unsigned char> all(keys_.bytes().begin(), keys_.bytes().end());
        if (apart()) all.insert(all.end(), values_.bytes().begin(), values_.bytes().end());
        all.insert(all.end(), scales_.begin(), scales_.end());
        return all;
    }
    std::int64_t layers() const { return keys_.has('L') ? kLayers : 1; }
    std::int64_t size() const { return keys_.size(); }

private:
    /// Those of the table's blocks, of which `blocks` has kBlocks.
    Numbers addresses(Memory& blocks) const {
        Numbers entries = tables_[0];
        const auto block = static_cast<std::int64_t>(blocks.size()) / kBlocks;
        for (std::int64_t& entry : entries) {
            if (entry >= 0) entry = reinterpret_cast<std::int64_t>(blocks.data()) + entry * block;
        }
        return entries;
    }
    void add_table(Rng& rng) {
        Numbers free(kBlocks);
        std::iota(free.begin(), free.end(), 0);
        rng.shuffle(free);
        Numbers& table = tables_.emplace_back(3 * 3, -1);
        std::size_t taken = 0;
        for (std::size_t b = 0; b < 3; ++b) {
            for (std::int64_t p = 0; p * kPage < kTokens[b]; ++p)
                table[b * 3 + static_cast<std::size_t>(p)] = free[taken++];
        }
    }

    Layout layout_;
    Cut keys_, values_;
    Memory scales_{0};
    std::vector<Numbers> tables_;
    bool by_address_ = false;
    Numbers entries_, scale_entries_;  // of all tables, for the batch
    std::int64_t starts_[4] = {0, kTokens[0], kTokens[0] + kTokens[1], kTokens[0] + kTokens[1] + kTokens[2]};
};

constexpr Layout kLayouts[] = {
    {"NHDTd8", "NHDT"},    {"NTHD", ""},   {"NHTD", "NTHD"},  {"N2LTHD", ""}, {"N2LHDTd8", ""}, {"NLHDT", "NLTHt4D"},
    {"NHDTd5", "NTHDd10"}, {"LN2HTD", ""}, {"NTHDt6d20", ""}, {"THD2LN", ""}, {"NLTHD2", ""},   {"LNTHD", "LNTHD"},
};

/// What of two sides a run copies: of positions j those where j % ranks is ranks - 1, and one layer or all.
struct Part {
    std::int64_t ranks = 1;
    std::int64_t layers = 1, from_layer = 0, to_layer = 0;

    bool has(std::int64_t position) const { return position % ranks == ranks - 1; }
};

/// Calls `each`(b, position, layer of the part, key (0) or value (1), head, element) for all that the part has.
template <class Each>
void for_elements(const Part& part, Each each) {
    for (std::size_t b = 0; b < 3; ++b) {
        for (std::int64_t t = 0; t < kTokens[b]; ++t) {
            if (!part.has(t)) continue;
            for (std::int64_t i = 0; i < part.layers * 2 * kHeads * kDim; ++i)
                each(b, t, i / (2 * kHeads * kDim), i / (kHeads * kDim) % 2, i / kDim % kHeads, i % kDim);
        }
    }
}

/// Has kvjit copy the part from `source` to `destination`; `fields`: types and quantisation.
void relayout(const std::string& fields, Side& source, Side& destination, const Part& part = {}) {
    static const Engine engine = *Engine::create();
    const auto spec = KernelSpec::parse("op=Relayout,head_dim=40,page_size=12," + fields + "," + source.fields("") +
                                        "," + destination.fields("to_"));
    REQUIRE_MESSAGE(spec.has_value(), spec.error().message());
    const auto kernel = engine.kernel(*spec, chosen_target());
    REQUIRE_MESSAGE(kernel.has_value(), kernel.error().message());
    const Batch read = source.batch(), written = destination.batch();
    Relayout both(read, written);
    both.num_layers = part.layers;
    both.from_ranks = both.to_ranks = part.ranks;
    both.from_rank = both.to_rank = part.ranks - 1;
    auto plan = kernel->plan(both);
    REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
    const auto ran = plan->relayout(source.tensors(), destination.tensors(), part.from_layer, part.to_layer);
    REQUIRE_MESSAGE(ran.has_value(), ran.error().message());
    REQUIRE(plan->synchronize().has_value());
}

/// Copies a part and compares all bytes of the destination.
void check_move(const Layout& from, const Layout& to, kvjit_dtype type, const char* name, std::uint64_t seed) {
    CAPTURE(from.text(""));
    CAPTURE(to.text(""));
    CAPTURE(name);
    CAPTURE(seed);
    Rng rng(seed);
    Side source(from, type, rng), destination(to, type, rng);
    // Between equal layouts whose layers have one table, all layers are copied at once.
    const bool at_once = &from == &to;
    if (!at_once && rng.chance(0.5)) source.add_tables(rng);
    if (!at_once && rng.chance(0.5)) destination.add_tables(rng);
    Part part;
    part.ranks = rng.between(1, 2);
    if (source.layers() == destination.layers() && (at_once || rng.chance(0.5))) {
        part.layers = source.layers();
    } else {
        part.from_layer = rng.below(source.layers());
        part.to_layer = rng.below(destination.layers());
    }
    Side expected = destination;
    for_elements(part, [&](std::size_t b, std::int64_t t, std::int64_t layer, std::int64_t kind, std::int64_t head,
                           std::int64_t d) {
        std::memcpy(expected.at(b, t, part.to_layer + layer, kind, head, d),
                    source.at(b, t, part.from_layer + layer, kind, head, d), static_cast<std::size_t>(source.size()));
    });
    relayout("t1=" + std::string(name), source, destination, part);
    CHECK(destination.bytes() == expected.bytes());
}

TEST_CASE("relayouts between layouts that cut rows or pages keep all bytes") {
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

/// A side of a seed of its own, so that two sides of one layout begin with the same bytes and tables.
Side begun(const Layout& layout, kvjit_dtype type) {
    Rng rng(7);
    return {layout, type, rng};
}

TEST_CASE("what a relayout makes of numbers is the same in pieces as in whole rows") {
    struct Change {
        const char* fields;
        kvjit_dtype from, to;
    };
    for (const Change& change : {Change{"t1=f16,quant_bit=8,to_quant_bit=0", KVJIT_I8, KVJIT_F16},
                                 Change{"t1=f16,quant_bit=8,to_quant_bit=0,to_t2=f32", KVJIT_I8, KVJIT_F32},
                                 Change{"t1=f32,t2=f16,to_t2=f32", KVJIT_F16, KVJIT_F32},
                                 Change{"t1=f16,t2=f32,to_t2=f16", KVJIT_F32, KVJIT_F16}}) {
        for (const std::int64_t ranks : {1, 2}) {
            CAPTURE(change.fields);
            CAPTURE(ranks);
            Rng rng(11);
            Side source(kCodes, change.from, rng);
            if (change.from == KVJIT_I8) source.add_scales(rng);
            if (change.from == KVJIT_I8 && ranks == 2) source.give_addresses();  // once by ids, once by these
            Side rows = begun(kRows, change.to), pieces = begun(kPieces, change.to);
            const Part part = {.ranks = ranks};
            relayout(change.fields, source, rows, part);
            relayout(change.fields, source, pieces, part);
            int wrong = 0;
            for_elements(part, [&](auto... at) {
                wrong += std::memcmp(rows.at(at...), pieces.at(at...), static_cast<std::size_t>(rows.size())) != 0;
            });
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("codes and scales that a relayout makes of pieces are those that it makes of whole rows") {
    Rng rng(11);
    Side source(kCodes, KVJIT_I8, rng);
    source.add_scales(rng);
    for (const std::int64_t ranks : {1, 2}) {
        CAPTURE(ranks);
        const auto by_way_of = [&](const Layout& layout) {
            Side numbers = begun(layout, KVJIT_F16), codes = begun(kCodes, KVJIT_I8);
            Rng other(13);
            codes.add_scales(other);
            const std::vector<unsigned char> before = codes.bytes();
            relayout("t1=f16,quant_bit=8,to_quant_bit=0", source, numbers);
            relayout("t1=f16,quant_bit=0,to_quant_bit=8", numbers, codes, {.ranks = ranks});
            CHECK(codes.bytes() != before);
            return codes.bytes();
        };
        CHECK(by_way_of(kRows) == by_way_of(kPieces));
    }
}

}  // namespace
}  // namespace kvjit::test

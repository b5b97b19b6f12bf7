#include "gpu/bench/decode_case.h"

#include "gpu/bench/setup.h"
#include "support/rng.h"

namespace kvjit::bench {
namespace {

/// A row for each sequence, as wide as the longest's; past the others' pages there is nothing. Pages lie `step` apart,
/// in no order.
std::vector<std::int64_t> table(const Shape& shape, std::int64_t page, std::int64_t step) {
    std::vector<std::int64_t> pages = arithmetic(shape.pages(page), 0, step);
    test::Rng(2).shuffle(pages);
    std::vector<std::int64_t> entries;
    auto next = pages.begin();
    for (const std::int64_t length : shape.lengths) {
        const std::int64_t used = Shape::pages_of(length, page);
        entries.insert(entries.end(), next, next + used);
        entries.resize(entries.size() + static_cast<std::size_t>(Shape::pages_of(shape.longest(), page) - used), -1);
        next += used;
    }
    return entries;
}

}  // namespace

Shape even(std::int64_t sequences, std::int64_t keys) {
    return {"B " + std::to_string(sequences) + ", keys " + std::to_string(keys),
            std::vector<std::int64_t>(static_cast<std::size_t>(sequences), keys)};
}

std::vector<Shape> engine_shapes() {
    Shape ragged = even(64, 1024);
    ragged.text = "B 64, keys 1k, one 128k";
    ragged.lengths[17] = 131072;
    std::vector<Shape> shapes = {ragged};
    for (const std::int64_t group : {8, 1}) {
        Shape shape = even(16, 8192);
        shape.text += ", G " + std::to_string(group);
        shape.kv_heads = kHeads / group;
        shapes.push_back(shape);
    }
    for (const std::int64_t tokens : {2, 4, 8}) {
        Shape shape = even(16, 8192);
        shape.text += ", " + std::to_string(tokens) + " new";
        shape.new_tokens = tokens;
        shapes.push_back(shape);
    }
    return shapes;
}

std::vector<Variant> all_variants() {
    std::vector<Variant> all;
    for (const bool stores : {false, true}) {
        for (const bool blocks : {false, true}) {
            for (const Elements* elements : {&kF16, &kInt8, &kInt4}) all.push_back({*elements, blocks, stores});
        }
    }
    // A check looks at the tables, whatever the cache holds.
    for (const bool blocks : {false, true}) all.push_back({kF16, blocks, true, KVJIT_CHECK_FULL});
    return all;
}

test::IndexArrays arrays_of(const Shape& shape, const Variant& variant) {
    const test::Numbers tokens(shape.lengths.size(), shape.new_tokens);
    test::IndexArrays arrays({test::parse_spec(variant.spec(shape)), tokens, shape.lengths, shape.kv_heads});
    arrays.batch.decoding_batches = shape.new_tokens == 1 ? shape.sequences() : 0;
    arrays.batch.max_seqlen = shape.new_tokens;
    arrays.batch.max_kvlen = shape.longest();
    arrays.batch.num_blocks = variant.blocks ? variant.pages(shape) : 0;
    arrays.batch.max_tokens = variant.blocks ? 0 : variant.pages(shape) * kPage;
    const std::int64_t columns = Shape::pages_of(shape.longest(), variant.page());
    arrays.set_table(table(shape, variant.page(), variant.blocks ? 1 : kPage), {shape.sequences(), columns});
    return arrays;
}

}  // namespace kvjit::bench

#include "gpu/bench/decode_case.h"

#include "gpu/bench/setup.h"
#include "support/rng.h"

namespace kvjit::bench {

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

std::vector<std::int64_t> key_starts(const Shape& shape) {
    std::vector<std::int64_t> starts(shape.lengths.size() + 1);
    std::inclusive_scan(shape.lengths.begin(), shape.lengths.end(), starts.begin() + 1);
    return starts;
}

std::vector<std::int64_t> pasts(const Shape& shape) {
    std::vector<std::int64_t> lengths = shape.lengths;
    for (std::int64_t& length : lengths) length -= shape.new_tokens;
    return lengths;
}

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

}  // namespace kvjit::bench

#include "random_cache.h"

#include <doctest/doctest.h>

namespace kvjit::test {
namespace {

bool has(const std::string& text, char letter) {
    return text.find(letter) != std::string::npos;
}

/// Ends up with tokens for ids, and one of them a block.
bool is_tokenwise(const LayoutChoice& layout, const std::string& mode) {
    return mode == ",cache_mode=offset" || mode == ",cache_mode=token_table" || layout.name == "sglang:indices" ||
           layout.sets_page;
}

/// Rows or pages in pieces, of keys or of values: nothing says where such a cache's scales would lie.
bool cuts(const LayoutChoice& layout) {
    const std::string lead = "value_layout=", values = layout.name.substr(layout.name.find(lead) + 1);
    const bool apart = layout.name.find(lead) != std::string::npos;
    const auto cut = [](const std::string& order) { return order.back() != 'D' || has(order, 'd') || has(order, 't'); };
    return cut(layout.order) || (apart && cut(values)) || layout.name == "vllm:rocm";
}

/// A table of blocks, or pages, of the default size.
bool takes_pages(const std::string& text) {
    const int mode = parsed(text).cache_mode;
    return mode >= KVJIT_PAGE_TABLE && mode <= KVJIT_BLOCK_POINTERS && parsed(text).page_size == 128;
}

}  // namespace

kvjit_spec parsed(const std::string& text) {
    kvjit_spec spec;
    Error error;
    const kvjit_status status = kvjit_spec_parse(text.c_str(), &spec, error.get());
    REQUIRE_MESSAGE(status == KVJIT_OK, text << ": " << error.message());
    return spec;
}

RandomPair random_pair(Rng& random) {
    static const std::vector<LayoutChoice> kLayouts = layout_choices();
    static const std::vector<std::string> kModes = {",cache_mode=offset", ",cache_mode=token_table",
                                                    ",cache_mode=page_table"};
    const LayoutChoice& a = random.pick(kLayouts);
    const LayoutChoice& b = random.chance(0.3) ? a : random.pick(kLayouts);
    const std::string mode_a = a.sets_mode ? "" : random.pick(kModes), mode_b = b.sets_mode ? "" : random.pick(kModes);
    const std::int64_t tokens =
        is_tokenwise(a, mode_a) || is_tokenwise(b, mode_b) ? 1 : random.pick<std::int64_t>({4, 8, 12});
    const bool cut = cuts(a) || cuts(b);
    static const std::vector<std::string> kPlain = {"t1=f32", "t1=f16", "t1=f32,t2=f16"};
    static const std::vector<std::string> kQuantised = {"t1=f32,quant_bit=8", "t1=f16,quant_bit=8,quant_group=4,t3=f32",
                                                        "t1=f16,quant_bit=4", "t1=f32,quant_bit=4,t3=f16"};
    const std::string types = !cut && random.chance(0.5) ? random.pick(kQuantised) : random.pick(kPlain);
    const std::string common = types + ",head_dim=" + random.pick<std::string>({"8", "16", "24"});
    RandomPair pair;
    const auto text = [&](const LayoutChoice& layout, const std::string& mode) {
        const std::string op = random.chance(0.5) ? "KeyValueCache" : "MultiHeadCacheAttention";
        std::string fields = "op=" + op + "," + common + ",layout=" + layout.name + mode;
        kvjit_spec spec;
        // A page size where it counts.
        const std::string paged = fields + ",page_size=" + std::to_string(tokens);
        return !layout.sets_page && kvjit_spec_parse(paged.c_str(), &spec, nullptr) == KVJIT_OK ? paged : fields;
    };
    pair.first = text(a, mode_a);
    pair.second = text(b, mode_b);
    // Pages of one token are not made of pieces.
    if (tokens == 1 && (takes_pages(pair.first) || takes_pages(pair.second))) return random_pair(random);
    pair.size.heads = random.between(1, 3);
    pair.size.layers = has(a.order, 'L') && has(b.order, 'L') ? random.between(1, 3) : 1;
    pair.size.blocks = random.between(4, 9);
    pair.size.sequence_tokens = tokens;
    return pair;
}

}  // namespace kvjit::test

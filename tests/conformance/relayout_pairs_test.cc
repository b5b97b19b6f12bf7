// From every engine's layout to every other one's, and back.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "conformance/names.h"
#include "conformance/options.h"
#include "conformance/ragged.h"
#include "conformance/relayout_call.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kHeads = 2;
constexpr std::int64_t kLayers = 2;

const std::vector<std::string> kTypes = {"head_dim=32,t1=f16", "head_dim=64,t1=f16,quant_bit=8,quant_group=16",
                                         "head_dim=64,t1=f32,t3=f16,quant_bit=4"};

SideCase side_of(const Named& named, const std::string& types, std::int64_t page_size) {
    const std::string pages = named.lacks_page_size() ? ",page_size=" + std::to_string(page_size) : "";
    SideCase side{spec_of("op=KeyValueCache," + types + ",layout=" + named.name + pages)};
    side.num_kv_heads = kHeads;
    side.num_layers = named.order.find('L') == std::string::npos ? 1 : kLayers;
    side.rows = named.name == "sglang" ? TableRows::kIndexed : TableRows::kPadded;
    return side;
}

/// Of three sequences all tokens, and of two what a step adds.
std::vector<Sequence> sequences(Rng& rng) {
    return {{0, 37}, {0, 1}, {0, 16}, {rng.between(1, 30), 3}, {rng.between(1, 30), 18}};
}

RelayoutCall call_of(Side& from, Side& to, Rng& rng) {
    RelayoutCall call(from, to);
    call.numbers.num_layers = 1;
    call.from_layer = rng.below(from.which().num_layers);
    call.to_layer = rng.below(to.which().num_layers);
    return call;
}

bool same_bytes(const std::byte* a, const std::byte* b, std::int64_t elements, int dtype) {
    return std::memcmp(a, b, static_cast<std::size_t>(elements) * bytes_of(dtype)) == 0;
}

bool same_row(const kvjit_spec& spec, const CodeRow& a, const CodeRow& b) {
    return same_bytes(a.codes, b.codes, spec.quant_bit == 4 ? spec.head_dim / 2 : spec.head_dim, a.dtype) &&
           (a.scales == nullptr || same_bytes(a.scales, b.scales, spec.head_dim / spec.quant_group, a.scale_dtype));
}

/// Whether two sides of one layout have the same new tokens, each in a layer of its own.
bool same_tokens(const Side& a, std::int64_t a_layer, const Side& b, std::int64_t b_layer) {
    for (std::size_t s = 0; s < a.sequences().size(); ++s) {
        for (std::int64_t i = 0; i < a.sequences()[s].fresh; ++i) {
            for (std::int64_t head = 0; head < kHeads; ++head) {
                for (const int part : {0, 1}) {
                    const CodeRow here = a.row(s, a.sequences()[s].past + i, a_layer, part, head);
                    const CodeRow there = b.row(s, b.sequences()[s].past + i, b_layer, part, head);
                    if (!same_row(a.which().spec, here, there)) return false;
                }
            }
        }
    }
    return true;
}

void check_pair(const Named& here, const Named& there, const std::string& types, std::uint64_t seed) {
    CAPTURE(here.name);
    CAPTURE(there.name);
    CAPTURE(types);
    CAPTURE(seed);
    Rng rng(seed);
    Side first(side_of(here, types, 16), sequences(rng), rng), away(side_of(there, types, 5), sequences(rng), rng),
        back(side_of(here, types, 16), sequences(rng), rng);
    for (Side* side : {&first, &away, &back}) side->cache().fill_bytes(rng);
    RelayoutCall out = call_of(first, away, rng), home = call_of(away, back, rng);
    home.from_layer = out.to_layer;
    CHECK(judge_relayout(out) == "");
    CHECK(judge_relayout(home) == "");
    CHECK(same_tokens(first, out.from_layer, back, home.to_layer));
}

TEST_CASE("relayouts between engines' layouts by their names, there and back, keep all bytes") {
    const std::vector<Named> names = names_of_whole_rows();
    const std::size_t pairs = names.size() * names.size();
    REQUIRE(pairs > 1000);
    Rng rng(options().seed);
    const std::size_t count = options().full ? pairs : 120;
    for (std::size_t k = 0; k < count; ++k) {
        const std::size_t pair = options().full ? k : static_cast<std::size_t>(rng.below(static_cast<int>(pairs)));
        check_pair(names[pair / names.size()], names[pair % names.size()], kTypes[k % kTypes.size()], rng.next());
    }
}

}  // namespace
}  // namespace kvjit::test

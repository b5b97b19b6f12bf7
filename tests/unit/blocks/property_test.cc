// Random caches, random blocks: all memory afterwards is what the oracle says, to the last byte between the elements.
#include <doctest/doctest.h>

#include "operations.h"
#include "random_cache.h"

namespace kvjit::test {
namespace {

TEST_CASE("blocks are copied, moved, swapped and zeroed as the oracle does it, whatever the layouts") {
    each_seed(1500, [](std::uint64_t seed) {
        Rng random(seed);
        const RandomPair pair = random_pair(random);
        INFO("KVJIT_TEST_SEED=", seed, " blocks_test -tc='blocks are copied*': ", pair.first, " and ", pair.second);
        CacheModel first(parsed(pair.first), pair.size, random);
        ModelSize other = pair.size;
        other.blocks = random.between(4, 9);
        CacheModel second(parsed(pair.second), other, random);
        check_operations(first, second, {}, random);
    });
}

TEST_CASE("codes and scales at addresses of their own are each moved as if all at once") {
    Rng random(11);
    const kvjit_spec spec =
        parsed("op=KeyValueCache,head_dim=16,quant_bit=8,cache_mode=block_pointers,page_size=4,layout=2LTHD");
    CacheModel cache(spec, {}, random);
    const std::vector<Bytes> were = {cache.content(0), cache.content(1), cache.content(2)};
    const auto codes = static_cast<std::ptrdiff_t>(2 * 4 * 2 * 16);  // bytes of a block
    const auto joined = [&](std::size_t of_codes, std::size_t of_scales) {
        Bytes bytes(were[of_codes].begin(), were[of_codes].begin() + codes);
        bytes.insert(bytes.end(), were[of_scales].begin() + codes, were[of_scales].end());
        return bytes;
    };
    // A chain of codes from below, one of scales from above.
    const std::int64_t from[] = {cache.id(0), cache.id(1), cache.scale_id(1), cache.scale_id(2)};
    const std::int64_t to[] = {cache.id(1), cache.id(2), cache.scale_id(0), cache.scale_id(1)};
    REQUIRE(move_blocks(cache.blocks(), from, to, 2).has_value());
    CHECK(cache.content(0) == joined(0, 1));
    CHECK(cache.content(1) == joined(0, 2));
    CHECK(cache.content(2) == joined(1, 2));
}

TEST_CASE("every layout that has a name is tried, with all of the modes") {
    std::vector<std::string> missing;
    for (const LayoutChoice& layout : layout_choices()) missing.push_back("layout=" + layout.name);
    std::vector<std::string> modes = {"=offset", "=token_table", "=page_table", "=block_pointers"};
    missing.insert(missing.end(), modes.begin(), modes.end());
    for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
        Rng random(seed);
        const RandomPair pair = random_pair(random);
        for (const std::string& text : {pair.first, pair.second}) {
            std::erase_if(
                missing, [&](const std::string& piece) { return (text + ",").find(piece + ",") != std::string::npos; });
        }
    }
    for (const std::string& each : missing) FAIL_CHECK(each);
}

}  // namespace
}  // namespace kvjit::test

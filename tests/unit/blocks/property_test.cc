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

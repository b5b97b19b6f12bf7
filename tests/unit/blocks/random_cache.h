// Caches of any layout, type and size, in pairs of one format.
#pragma once

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "cache_model.h"

namespace kvjit::test {

/// KVJIT_TEST_SEED=N runs the one case of that seed.
inline void each_seed(std::uint64_t count, const std::function<void(std::uint64_t seed)>& body) {
    const char* only = std::getenv("KVJIT_TEST_SEED");
    if (only != nullptr) return body(std::strtoull(only, nullptr, 10));
    for (std::uint64_t seed = 1; seed <= count; ++seed) body(seed);
}

/// Layouts by the names that engines have for them, and some that nobody has.
struct LayoutChoice {
    std::string name, order;
    bool sets_mode, sets_page;
};
inline std::vector<LayoutChoice> layout_choices() {
    std::vector<LayoutChoice> all = {{"TH2LD", "TH2LD", false, false},
                                     {"N2THt2Dd4,cache_mode=block_table", "N2THt2Dd4", true, false},
                                     {"NLTHt4D,cache_mode=block_table,value_layout=NDHTL", "NLTHt4D", true, false},
                                     {"LTHD,value_layout=DHTL", "LTHD", false, false},
                                     {"NHDTd4,cache_mode=block_table,value_layout=NDTHd8", "NHDTd4", true, false},
                                     {"TLH2D,cache_mode=block_pointers", "TLH2D", true, false}};
    kvjit_spec_layouts(
        [](void* to, const char* name, const char* order, const char* sets, const char*) {
            const std::string fields = sets;
            static_cast<std::vector<LayoutChoice>*>(to)->push_back({name, order,
                                                                    fields.find("cache_mode") != std::string::npos,
                                                                    fields.find("page_size") != std::string::npos});
        },
        &all);
    return all;
}

/// Two specs of one format, as texts, and their sizes.
struct RandomPair {
    std::string first, second;
    ModelSize size;
};
RandomPair random_pair(Rng& random);
kvjit_spec parsed(const std::string& text);

}  // namespace kvjit::test

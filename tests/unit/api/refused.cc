// What must not compile, one mistake for each CASE. The test looks for the words of its static_assert.
#include <cstdint>
#include <vector>

#include "kvjit/kvjit.hpp"

struct Wide {
    float number;
};
template <>
inline constexpr kvjit_dtype kvjit::dtype_of<Wide> = KVJIT_F16;

void refused() {
#if CASE == 1
    std::vector<std::uint16_t> elements;
    kvjit::Tensor tensor(elements, {1, 2});
#elif CASE == 2
    std::vector<Wide> elements;
    kvjit::Tensor tensor(elements);
#elif CASE == 3
    std::vector<float> elements;
    kvjit::Batch().set_seqstarts(elements);
#elif CASE == 4
    int lines = 0;
    kvjit::EngineOptions().set_log([&](kvjit_log_level, const char*) { ++lines; });
#endif
}

// The vector layer behind plain functions. KVJIT_LEVEL: the instruction set that this copy is compiled for.
#include "primitives.h"

#include "cpu/vec.h"

namespace kvjit::test {
namespace {

template <int N, class From, class To, class F>
void map(const From* from, To* to, i64 count, F&& f) {
    for (i64 i = 0; i < count; i += N) f(from, to, i);
}

#define KVJIT_MAP(name, From, To, body)                                \
    void name(const From* from, To* to, i64 count) {                   \
        map<kLanes>(from, to, count, [](const From* x, To* y, i64 i) { \
            constexpr int N = kLanes;                                  \
            body;                                                      \
        });                                                            \
    }

KVJIT_MAP(half_to_float, u16, float, store<N>(y + i, load<N>(reinterpret_cast<const f16_t*>(x) + i)))
KVJIT_MAP(float_to_half, float, u16, store<N>(reinterpret_cast<f16_t*>(y) + i, load<N>(x + i)))
KVJIT_MAP(exp_of, float, float, store<N>(y + i, exp<N>(load<N>(x + i))))
KVJIT_MAP(exp2_of, float, float, store<N>(y + i, exp2<N>(load<N>(x + i))))
KVJIT_MAP(log_of, float, double, for (int k = 0; k < N; ++k) y[i + k] = log(x[i + k]))
KVJIT_MAP(int8_to_float, i8, float, store<N>(y + i, load<N>(reinterpret_cast<const i8_t*>(x) + i)))
KVJIT_MAP(int4_to_float, u8, float, store<N>(y + i, load<N>(reinterpret_cast<const i4x2_t*>(x) + i / 2)))

}  // namespace
}  // namespace kvjit::test

#define KVJIT_TEXT_(x) #x
#define KVJIT_TEXT(x) KVJIT_TEXT_(x)
#define KVJIT_TABLE_(level) primitives_##level
#define KVJIT_TABLE(level) KVJIT_TABLE_(level)

extern "C" const kvjit::test::Primitives KVJIT_TABLE(KVJIT_LEVEL);
const kvjit::test::Primitives KVJIT_TABLE(KVJIT_LEVEL) = {
    KVJIT_TEXT(KVJIT_LEVEL), kvjit::test::half_to_float, kvjit::test::float_to_half, kvjit::test::exp_of,
    kvjit::test::exp2_of,    kvjit::test::log_of,        kvjit::test::int8_to_float, kvjit::test::int4_to_float};

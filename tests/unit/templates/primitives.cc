// The vector layer behind plain functions, for one level.
#include "primitives.h"

#include "cpu/machine/bytes.h"
#include "cpu/machine/vector.h"
#include "program_names.h"

namespace kvjit::test {
namespace {

constexpr int N = kLanes;

void half_to_float(const u16* half, float* value, i64 count) {
    for (i64 i = 0; i < count; i += N) store<N>(value + i, load<N>(reinterpret_cast<const f16_t*>(half) + i));
}
void float_to_half(const float* value, u16* half, i64 count) {
    for (i64 i = 0; i < count; i += N) store<N>(reinterpret_cast<f16_t*>(half) + i, load<N>(value + i));
}
void bfloat16_to_float(const u16* brain, float* value, i64 count) {
    for (i64 i = 0; i < count; i += N) store<N>(value + i, load<N>(reinterpret_cast<const bf16_t*>(brain) + i));
}
void float_to_bfloat16(const float* value, u16* brain, i64 count) {
    for (i64 i = 0; i < count; i += N) store<N>(reinterpret_cast<bf16_t*>(brain) + i, load<N>(value + i));
}
void exp_of(const float* x, float* y, i64 count) {
    for (i64 i = 0; i < count; i += N) store<N>(y + i, exp<N>(load<N>(x + i)));
}
template <int kDegree>
void exp2_short_of(const float* x, float* y, i64 count) {
    for (i64 i = 0; i < count; i += N) store<N>(y + i, exp2_short<N, kDegree>(load<N>(x + i)));
}
void log_of(const float* x, double* y, i64 count) {
    for (i64 i = 0; i < count; ++i) y[i] = log(x[i]);
}
void int8_to_float(const i8* code, float* value, i64 count) {
    for (i64 i = 0; i < count; i += N) store<N>(value + i, load<N>(reinterpret_cast<const i8_t*>(code) + i));
}
void int4_to_float(const u8* codes, float* value, i64 count) {
    for (i64 i = 0; i < count; i += N) store<N>(value + i, load<N>(reinterpret_cast<const i4x2_t*>(codes) + i / 2));
}
void add_byte_products_of(int* sums, const u8* a, const i8* b, i64 count) {
    for (i64 i = 0; i < count; i += 16) {
        const vi<16> sum = load_raw<i32, 16>(sums + i);
        store_vector(sums + i, add_byte_products(sum, load_raw<i32, 16>(a + 4 * i), load_raw<i32, 16>(b + 4 * i)));
    }
}
void load_columns(int* to, const char* const* rows) {
    vi<16> columns[8];
    load_8_columns(columns, rows, 0);
    for (int i = 0; i < 8; ++i) store_vector(to + 16 * i, columns[i]);
}
void zip_rows(int* to, const char* const* rows) {
    vi<16> zipped[2];
    zip_32_bytes(zipped, rows);
    for (int i = 0; i < 2; ++i) store_vector(to + 16 * i, zipped[i]);
    store_vector(to + 32, zip_16_bytes(rows));
}
template <int N>
void zip_from(int* to, const char* const (&rows)[4], i64 byte) {
    vi<16> zipped[N / 16];
    kvjit::zip_rows<N>(zipped, rows, byte);
    for (int i = 0; i < N / 16; ++i) store_vector(to + 16 * i, zipped[i]);
}
void zip_long_rows(int* to, const char* const* rows) {
    const char* const four[] = {rows[0], rows[1], rows[2], rows[3]};
    zip_from<64>(to, four, 0);
    zip_from<32>(to + 64, four, 32);
}
void deal_digits_of(const int* numbers, int* digits, i64 count) {
    for (i64 i = 0; i < count; i += 16) store_vector(digits + i, deal_digits(load_raw<i32, 16>(numbers + i)));
}

}  // namespace
}  // namespace kvjit::test

extern "C" const kvjit::test::Primitives KVJIT_CASE;
const kvjit::test::Primitives KVJIT_CASE = {
    KVJIT_TEXT(KVJIT_LEVEL),        kvjit::test::half_to_float,     kvjit::test::float_to_half,
    kvjit::test::bfloat16_to_float, kvjit::test::float_to_bfloat16, kvjit::test::exp_of,
    kvjit::test::exp2_short_of<5>,  kvjit::test::exp2_short_of<3>,  kvjit::test::log_of,
    kvjit::test::int8_to_float,     kvjit::test::int4_to_float,     kvjit::test::add_byte_products_of,
    kvjit::test::load_columns,      kvjit::test::zip_rows,          kvjit::test::zip_long_rows,
    kvjit::test::deal_digits_of};

// Instructions that compute lane by lane, against values worked out from the PTX ISA's text by hand.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "ptx/lab.h"
#include "ptx/machine/instructions.h"

namespace kvjit::ptx {
namespace {

constexpr u32 kOne = 0x3f800000, kInfinity = 0x7f800000, kNan = 0x7fffffff, kMinusZero = 0x80000000;
constexpr u32 kMinusOne = 0xbf800000, kTwo = 0x40000000, kThree = 0x40400000, kSmallest = 1;

/// An instruction's name, its sources in order, and its result; each as the bits of its register.
struct Example {
    const char* name;
    std::vector<u64> sources;
    u64 result;
};

const Example kExamples[] = {
    {"mov.u16", {0xabcd}, 0xabcd},
    {"mov.b16", {0xabcd}, 0xabcd},
    {"mov.u32", {0xdeadbeef}, 0xdeadbeef},
    {"mov.b32", {0xdeadbeef}, 0xdeadbeef},
    {"mov.f32", {kNan}, kNan},
    {"mov.u64", {0x123456789abcdef0}, 0x123456789abcdef0},
    {"mov.b64", {0x123456789abcdef0}, 0x123456789abcdef0},
    {"mov.pred", {1}, 1},
    {"selp.u16", {7, 9, 1}, 7},
    {"selp.b16", {7, 9, 0}, 9},
    {"selp.u32", {7, 9, 0}, 9},
    {"selp.b32", {7, 9, 1}, 7},
    {"selp.f32", {kOne, kTwo, 0}, kTwo},
    {"selp.u64", {7, 9, 1}, 7},
    {"selp.b64", {7, 9, 0}, 9},
    // Integers wrap.
    {"add.s16", {0x7fff, 1}, 0x8000},
    {"add.s32", {0x7fffffff, 1}, 0x80000000},
    {"add.s64", {0x7fffffffffffffff, 2}, 0x8000000000000001},
    {"sub.s16", {0, 1}, 0xffff},
    {"sub.s32", {0, 1}, 0xffffffff},
    {"sub.s64", {5, 7}, 0xfffffffffffffffe},
    {"neg.s16", {5}, 0xfffb},
    {"neg.s32", {5}, 0xfffffffb},
    {"neg.s64", {1}, 0xffffffffffffffff},
    {"mul.lo.s16", {0x101, 0x101}, 0x0201},
    {"mul.lo.s32", {0x10001, 0x10001}, 0x20001},
    {"mul.lo.s64", {0x100000001, 0x100000001}, 0x200000001},
    {"mul.hi.s32", {0xffffffff, 1}, 0xffffffff},
    {"mul.hi.u32", {0xffffffff, 0xffffffff}, 0xfffffffe},
    {"mul.hi.s64", {0xffffffffffffffff, 2}, 0xffffffffffffffff},
    {"mul.hi.u64", {0xffffffffffffffff, 2}, 1},
    {"mul.wide.s16", {0xffff, 3}, 0xfffffffd},
    {"mul.wide.u16", {0xffff, 3}, 0x2fffd},
    {"mul.wide.s32", {0xffffffff, 3}, 0xfffffffffffffffd},
    {"mul.wide.u32", {0xffffffff, 3}, 0x2fffffffd},
    {"mad.lo.s32", {3, 5, 0xffffffff}, 14},
    {"mad.lo.s64", {3, 5, 0xffffffffffffffff}, 14},
    {"div.s32", {0xfffffff9, 2}, 0xfffffffd},  // -7 / 2, toward zero
    {"div.u32", {0xfffffff9, 2}, 0x7ffffffc},
    {"div.s64", {0xfffffffffffffff9, 2}, 0xfffffffffffffffd},
    {"div.u64", {9, 2}, 4},
    {"rem.s32", {0xfffffff9, 2}, 0xffffffff},
    {"rem.u32", {9, 4}, 1},
    {"rem.s64", {0xfffffffffffffff9, 2}, 0xffffffffffffffff},
    {"rem.u64", {9, 4}, 1},
    {"min.s32", {0xffffffff, 1}, 0xffffffff},
    {"min.u32", {0xffffffff, 1}, 1},
    {"min.s64", {0xffffffffffffffff, 1}, 0xffffffffffffffff},
    {"min.u64", {0xffffffffffffffff, 1}, 1},
    {"max.s32", {0xffffffff, 1}, 1},
    {"max.u32", {0xffffffff, 1}, 0xffffffff},
    {"max.s64", {0xffffffffffffffff, 1}, 1},
    {"max.u64", {0xffffffffffffffff, 1}, 0xffffffffffffffff},
    // Bits.
    {"and.pred", {1, 0}, 0},
    {"or.pred", {1, 0}, 1},
    {"xor.pred", {1, 1}, 0},
    {"not.pred", {0}, 1},
    {"and.b16", {0xff0, 0x0ff}, 0x0f0},
    {"and.b32", {0xff0, 0x0ff}, 0x0f0},
    {"and.b64", {0xff00000000, 0x0f00000000}, 0x0f00000000},
    {"or.b16", {0xf00, 0x00f}, 0xf0f},
    {"or.b32", {0xf00, 0x00f}, 0xf0f},
    {"or.b64", {0xf00, 0x00f}, 0xf0f},
    {"xor.b16", {0xff, 0x0f}, 0xf0},
    {"xor.b32", {0xff, 0x0f}, 0xf0},
    {"xor.b64", {0xff, 0x0f}, 0xf0},
    {"not.b16", {0xff}, 0xff00},
    {"not.b32", {0xff}, 0xffffff00},
    {"not.b64", {0xff}, 0xffffffffffffff00},
    {"shl.b16", {0x8001, 1}, 2},
    {"shl.b32", {1, 32}, 0},  // amounts beyond the width are as the width
    {"shl.b64", {1, 63}, 0x8000000000000000},
    {"shr.u16", {0x8000, 15}, 1},
    {"shr.s16", {0x8000, 99}, 0xffff},
    {"shr.u32", {0x80000000, 32}, 0},
    {"shr.s32", {0x80000000, 40}, 0xffffffff},
    {"shr.u64", {0x8000000000000000, 63}, 1},
    {"shr.s64", {0x8000000000000000, 4}, 0xf800000000000000},
    {"popc.b32", {0xf0f0}, 8},
    {"prmt.b32", {0x33221100, 0x77665544, 0x7052}, 0x77005522},
    {"prmt.b32", {0x00008000, 0, 0x0090}, 0x0000ff00},         // nibble 9: the sign of byte 1
    {"lop3.b32", {0xf0f0, 0xff00, 0xcccc, 0x6a}, 0x3ccc},      // (a & b) ^ c
    {"lop3.b32", {0xf0f0, 0xff00, 0xcccc, 0x01}, 0xffff0003},  // none of the three
    {"bfi.b32", {0xff, 0, 4, 4}, 0xf0},
    {"bfi.b32", {0, 0xffffffff, 30, 8}, 0x3fffffff},
    {"bfi.b64", {0xabcd, 0x1111, 32, 32}, 0xabcd00001111},
    // Comparisons; with NaN the plain ones are false, those with u are true.
    {"setp.eq.b16", {3, 3}, 1},
    {"setp.eq.s16", {3, 4}, 0},
    {"setp.ne.s16", {3, 4}, 1},
    {"setp.lt.s16", {0xffff, 1}, 1},
    {"setp.gt.s16", {0xffff, 1}, 0},
    {"setp.lt.u16", {0xffff, 1}, 0},
    {"setp.gt.u16", {0xffff, 1}, 1},
    {"setp.eq.b32", {5, 5}, 1},
    {"setp.ne.b32", {5, 5}, 0},
    {"setp.eq.s32", {5, 6}, 0},
    {"setp.ne.s32", {5, 6}, 1},
    {"setp.lt.s32", {0xffffffff, 0}, 1},
    {"setp.le.s32", {4, 4}, 1},
    {"setp.gt.s32", {0xffffffff, 0}, 0},
    {"setp.ge.s32", {4, 4}, 1},
    {"setp.lt.u32", {0xffffffff, 0}, 0},
    {"setp.le.u32", {0, 0xffffffff}, 1},
    {"setp.gt.u32", {0xffffffff, 0}, 1},
    {"setp.ge.u32", {0, 0xffffffff}, 0},
    {"setp.eq.b64", {1, 0x100000001}, 0},
    {"setp.eq.s64", {7, 7}, 1},
    {"setp.ne.s64", {1, 0x100000001}, 1},
    {"setp.lt.s64", {0xffffffffffffffff, 0}, 1},
    {"setp.le.s64", {1, 0}, 0},
    {"setp.gt.s64", {1, 0}, 1},
    {"setp.ge.s64", {0, 0}, 1},
    {"setp.lt.u64", {0xffffffffffffffff, 0}, 0},
    {"setp.le.u64", {0, 0}, 1},
    {"setp.gt.u64", {0xffffffffffffffff, 0}, 1},
    {"setp.ge.u64", {0, 1}, 0},
    {"setp.eq.f32", {0, kMinusZero}, 1},
    {"setp.eq.f32", {kNan, kNan}, 0},
    {"setp.ne.f32", {kNan, kOne}, 0},
    {"setp.ne.f32", {kTwo, kOne}, 1},
    {"setp.lt.f32", {kMinusOne, kOne}, 1},
    {"setp.le.f32", {kOne, kNan}, 0},
    {"setp.gt.f32", {kInfinity, kOne}, 1},
    {"setp.ge.f32", {kOne, kOne}, 1},
    {"setp.equ.f32", {kNan, kOne}, 1},
    {"setp.equ.f32", {kTwo, kOne}, 0},
    {"setp.neu.f32", {kNan, kNan}, 1},
    {"setp.neu.f32", {kOne, kOne}, 0},
    {"setp.ltu.f32", {kOne, kNan}, 1},
    {"setp.leu.f32", {kTwo, kOne}, 0},
    {"setp.gtu.f32", {kNan, kOne}, 1},
    {"setp.gtu.f32", {kOne, kTwo}, 0},
    {"setp.geu.f32", {kOne, kTwo}, 0},
    {"setp.num.f32", {kOne, kInfinity}, 1},
    {"setp.num.f32", {kOne, kNan}, 0},
    {"setp.nan.f32", {kOne, kNan}, 1},
    // float32, rounded to nearest even, with subnormal numbers.
    {"add.f32", {kOne, 0x33800000}, kOne},  // 1 + 2^-24: a tie
    {"add.f32", {kSmallest, kSmallest}, 2},
    {"sub.f32", {kOne, kOne}, 0},
    {"mul.f32", {0x00800000, 0x3f000000}, 0x00400000},  // 2^-126 / 2
    {"add.rn.f32", {kOne, kTwo}, kThree},
    {"sub.rn.f32", {kThree, kTwo}, kOne},
    {"mul.rn.f32", {kTwo, kTwo}, 0x40800000},
    {"div.rn.f32", {kOne, kThree}, 0x3eaaaaab},
    {"fma.rn.f32", {0x3f800001, 0x3f800001, 0xbf800002}, 0x28800000},  // (1 + u)^2 - (1 + 2u) = u^2, u = 2^-23
    {"fma.rn.f32", {kInfinity, 0, kOne}, kNan},
    {"mul.f32", {0xffc12345, kOne}, kNan},  // results are the canonical NaN
    {"neg.f32", {0}, kMinusZero},
    {"abs.f32", {kMinusOne}, kOne},
    {"min.f32", {kNan, kOne}, kOne},
    {"min.f32", {0, kMinusZero}, kMinusZero},
    {"max.f32", {kMinusZero, 0}, 0},
    {"max.f32", {kOne, kNan}, kOne},
    {"min.NaN.f32", {kNan, kOne}, kNan},
    {"max.NaN.f32", {kOne, kNan}, kNan},
    {"max.NaN.f32", {kOne, kTwo}, kTwo},
    {"ex2.approx.ftz.f32", {kThree}, 0x41000000},
    {"ex2.approx.ftz.f32", {0xff800000}, 0},
    {"ex2.approx.ftz.f32", {kMinusZero}, kOne},
    {"ex2.approx.ftz.f32", {0xc3000000}, 0},  // 2^-128 is subnormal
    {"lg2.approx.f32", {0x41000000}, kThree},
    {"lg2.approx.f32", {0}, 0xff800000},
    {"lg2.approx.f32", {kMinusOne}, kNan},
    {"lg2.approx.f32", {kSmallest}, bits_of(-149.0F)},
    {"rcp.approx.ftz.f32", {kThree}, 0x3eaaaaab},
    {"rcp.approx.ftz.f32", {kMinusZero}, 0xff800000},
    {"rcp.approx.ftz.f32", {kSmallest}, kInfinity},  // subnormal
    {"rcp.approx.ftz.f32", {kInfinity}, 0},
    {"rcp.approx.ftz.f32", {0xfe800001}, kMinusZero},  // -2^126 and more: the result is subnormal
    {"rcp.approx.ftz.f32", {kNan}, kNan},
    // float16 0x3c00 is 1, 0x3c01 1 + 2^-10, 0x7bff 65504, 0x7c00 infinity; bfloat16 0x3f80 is 1.
    {"add.rn.f16x2", {0x7bff3c00, 0x7bff3c00}, 0x7c004000},
    {"sub.rn.f16x2", {0x3c003c01, 0x40003c00}, 0xbc001400},
    {"mul.rn.f16x2", {0x3c014000, 0x3c014200}, 0x3c024600},
    {"neg.f16x2", {0x3c008000}, 0xbc000000},
    {"neg.bf16x2", {0x3f80ffc0}, 0xbf807fc0},
    {"fma.rn.f16x2", {0x3c013c01, 0x3c013c01, 0xbc02bc02}, 0x00100010},   // 2^-20
    {"fma.rn.bf16x2", {0x3f803f81, 0x40003f81, 0x3f80bf82}, 0x40403880},  // 3; (1 + u)^2 - (1 + 2u), u = 2^-7
    // Conversions.
    {"cvt.u16.u32", {0x12345}, 0x2345},
    {"cvt.u16.u64", {0x123456789}, 0x6789},
    {"cvt.s16.s8", {0x1fe}, 0xfffe},
    {"cvt.u32.u16", {0xffff}, 0xffff},
    {"cvt.s32.s16", {0xffff}, 0xffffffff},
    {"cvt.s32.s8", {0x180}, 0xffffff80},
    {"cvt.u32.u64", {0x123456789}, 0x23456789},
    {"cvt.u64.u16", {0xffff}, 0xffff},
    {"cvt.u64.u32", {0xffffffff}, 0xffffffff},
    {"cvt.s64.s16", {0x8000}, 0xffffffffffff8000},
    {"cvt.s64.s32", {0x80000000}, 0xffffffff80000000},
    {"cvt.rn.f32.s32", {0x01000001}, 0x4b800000},  // 2^24 + 1: a tie
    {"cvt.rn.f32.s32", {0xffffffff}, kMinusOne},
    {"cvt.rn.f32.u32", {0xffffffff}, 0x4f800000},
    {"cvt.rn.f32.s64", {0xfffffffffffffffe}, bits_of(-2.0F)},
    {"cvt.f32.f16", {0x0001}, 0x33800000},
    {"cvt.f32.f16", {0xfc00}, 0xff800000},
    {"cvt.rn.f16.f32", {0x3f801000}, 0x3c00},  // 1 + 2^-11: a tie
    {"cvt.rn.f16.f32", {0x3f803000}, 0x3c02},  // 1 + 3 * 2^-11: a tie
    {"cvt.rn.f16.f32", {bits_of(65520.0F)}, 0x7c00},
    {"cvt.rn.f16.f32", {bits_of(65519.9F)}, 0x7bff},
    {"cvt.rn.f16.f32", {0x33000001}, 0x0001},  // above half of the smallest
    {"cvt.rn.bf16.f32", {0x3f808000}, 0x3f80},
    {"cvt.rn.bf16.f32", {0x3f818000}, 0x3f82},
    {"cvt.rn.bf16.f32", {0x7f7fffff}, 0x7f80},
    {"cvt.rn.f16x2.f32", {kTwo, kOne}, 0x40003c00},  // the first source is the upper half
    {"cvt.rn.bf16x2.f32", {kTwo, kOne}, 0x40003f80},
    {"cvta.global.u64", {0x1000}, 0x1000},
    {"cvta.to.global.u64", {0x1000}, 0x1000},
};

/// Operands that end in the table's letters, "%rd12" for a width of 64.
std::string register_of(char letter, int number) {
    const char* prefix = letter == 'p' ? "%p" : letter == 'h' ? "%rs" : letter == 'w' ? "%r" : "%rd";
    return prefix + std::to_string(number);
}

/// Loads word `number` of the buffer into the register.
std::string fill(char letter, int number) {
    const std::string address = "[%rd0+" + std::to_string(8 * number) + "]";
    const std::string to = register_of(letter, number);
    if (letter == 'h') return "ld.global.u16 " + to + ", " + address + ";\n";
    if (letter == 'w') return "ld.global.u32 " + to + ", " + address + ";\n";
    if (letter == 'l') return "ld.global.u64 " + to + ", " + address + ";\n";
    return "ld.global.u32 %r40, " + address + "; setp.ne.s32 " + to + ", %r40, 0;\n";
}

/// Stores the register as a 64-bit word.
std::string drain(char letter, int number, int word) {
    const std::string from = register_of(letter, number), address = "[%rd0+" + std::to_string(8 * word) + "]";
    if (letter == 'l') return "st.global.u64 " + address + ", " + from + ";\n";
    if (letter == 'h') return "cvt.u32.u16 %r41, " + from + "; st.global.u32 " + address + ", %r41;\n";
    if (letter == 'w') return "st.global.u32 " + address + ", " + from + ";\n";
    return "selp.b32 %r41, 1, 0, " + from + "; st.global.u32 " + address + ", %r41;\n";
}

/// The row for an example: the first of its name with one destination and as many sources.
const InstructionRow& row_of(const Example& example) {
    for (const InstructionRow& row : instruction_table()) {
        if (row.name == example.name && row.operands.size() == example.sources.size() + 2) return row;
    }
    FAIL("no row for " << example.name);
    return instruction_table()[0];
}

u64 result_of(const Example& example) {
    constexpr int kResult = 20;
    const std::string_view letters = row_of(example).operands;
    Bench bench(32);
    std::string body, operands;
    for (std::size_t i = 0; i < example.sources.size(); ++i) {
        const int number = static_cast<int>(i) + 1;
        bench.data[i + 1] = example.sources[i];
        body += fill(letters[i + 2], number);
        operands += ", " + register_of(letters[i + 2], number);
    }
    const char to = letters[0];
    const int destination = to == 'p' ? 10 : kResult;
    body += std::string(example.name) + " " + register_of(to, destination) + operands + ";\n";
    bench.run(body + drain(to, destination, kResult));
    return bench.data[kResult];
}

TEST_CASE("instructions give what the ISA says") {
    for (const Example& example : kExamples) {
        CAPTURE(example.name);
        CAPTURE(example.sources);
        CHECK(result_of(example) == example.result);
    }
}

TEST_CASE("every instruction that computes lane by lane has an example") {
    std::set<std::string_view> shown, missing;
    for (const Example& example : kExamples) shown.insert(example.name);
    for (const InstructionRow& row : instruction_table()) {
        const bool is_single = row.operands.size() >= 3 && row.operands[1] == '=' &&
                               row.operands.find_first_of("Aait") == std::string_view::npos;
        const bool is_together = row.name.starts_with("shfl") || row.name.starts_with("vote");
        if (is_single && !is_together && !shown.contains(row.name)) missing.insert(row.name);
    }
    missing.erase("cvta.to.shared.u64"), missing.erase("cvta.shared.u64");  // memory_test.cc has these
    CHECK(missing == std::set<std::string_view>());
}

TEST_CASE("noise stays within what the ISA allows, and is there") {
    Bench bench(64);
    bench.options.has_noise = true;
    for (std::size_t l = 0; l < 32; ++l) bench.data[l] = bits_of(-0.37F * static_cast<float>(l + 1));
    bench.run(word_of_thread(0) +
              "ld.global.f32 %f1, [%rd1]; ex2.approx.ftz.f32 %f2, %f1; lg2.approx.f32 %f3, %f2;"
              "st.global.f32 [%rd1], %f2; st.global.f32 [%rd1+4], %f3;"
              "rcp.approx.ftz.f32 %f3, %f1; st.global.f32 [%rd1+256], %f3;");
    int off = 0, off_reciprocals = 0;
    for (std::size_t l = 0; l < 32; ++l) {
        const double exponent = static_cast<double>(-0.37F * static_cast<float>(l + 1));
        const double power = static_cast<double>(std::bit_cast<float>(static_cast<u32>(bench.data[l])));
        const double logarithm = static_cast<double>(std::bit_cast<float>(static_cast<u32>(bench.data[l] >> 32)));
        const double half_unit = std::ldexp(1.0, -24), allowed = std::ldexp(1.0, -22) + half_unit;
        CHECK(std::fabs(power / std::exp2(exponent) - 1) <= allowed);
        CHECK(std::fabs(logarithm - std::log2(power)) <= allowed * std::fmax(1, std::fabs(std::log2(power))));
        off += std::fabs(power / std::exp2(exponent) - 1) > half_unit;
        const double reciprocal = static_cast<double>(std::bit_cast<float>(static_cast<u32>(bench.data[32 + l])));
        CHECK(std::fabs(reciprocal * exponent - 1) <= std::ldexp(1.0, -23) + half_unit);
        off_reciprocals += std::fabs(reciprocal * exponent - 1) > half_unit;
    }
    CHECK(off > 16);
    CHECK(off_reciprocals > 8);
}

TEST_CASE("copies of registers that were never written do no harm, their use does") {
    Bench bench;
    bench.run("mov.u32 %r1, %r2; setp.eq.s32 %p1, 0, 0; selp.b32 %r3, 5, %r1, %p1; st.global.u32 [%rd0], %r3;");
    CHECK(bench.data[0] == 5);
    CHECK_THROWS_WITH_AS(bench.run("mov.u32 %r1, %r2; add.s32 %r3, %r1, 1;"),
                         doctest::Contains("%r1 is read, but was never written"), Fault);
}

}  // namespace
}  // namespace kvjit::ptx

// Control flow, barriers, what lanes do together, and tensor cores.
#include <doctest/doctest.h>

#include <string>

#include "ptx/lab.h"
#include "ptx/machine/half.h"
#include "ptx/machine/matrices.h"

namespace kvjit::ptx {
namespace {

const std::string kOwnWord = word_of_thread(0);

// ---- Control flow ---------------------------------------------------------------------------------------------------

TEST_CASE("lanes that part in loops and branches meet again") {
    Bench bench;
    // Lane l adds 1 to l; odd lanes 100 more in each round. After that all shuffle.
    bench.run(kOwnWord +
              "mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r3, 0;\n"
              "$LOOP: setp.ge.s32 %p1, %r3, %r1; @%p1 bra $DONE;\n"
              "add.s32 %r2, %r2, 1; and.b32 %r4, %r1, 1; setp.eq.s32 %p2, %r4, 0; @%p2 bra $EVEN;\n"
              "add.s32 %r2, %r2, 100;\n$EVEN: add.s32 %r3, %r3, 1; bra.uni $LOOP;\n"
              "$DONE: shfl.sync.bfly.b32 %r5|%p3, %r2, 1, 31, -1; st.global.u32 [%rd1], %r5;");
    for (u32 l = 0; l < 32; ++l) {
        const u32 other = l ^ 1;
        CHECK(bench.data[l] == other * (other % 2 == 1 ? 101 : 1));
    }
}

TEST_CASE("lanes that have ended are not waited for, nor read") {
    Bench bench;
    const std::string half = "mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 15; @%p1 ret;\n";
    bench.run(kOwnWord + half +
              "bar.warp.sync -1; shfl.sync.idx.b32 %r2|%p2, %r1, 3, 31, -1; st.global.u32 [%rd1], %r2;");
    CHECK(bench.data[15] == 3);
    CHECK(bench.data[16] == 0);
    CHECK_THROWS_WITH_AS(bench.run(half + "shfl.sync.idx.b32 %r2|%p2, %r1, 20, 31, -1;"),
                         doctest::Contains("lane 20, which is read, is not there"), Fault);
}

TEST_CASE("a part of a warp can't do what all its lanes must") {
    const std::string part = "mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 7; @%p1 bra $END;\n";
    for (const char* what : {"shfl.sync.idx.b32 %r2|%p2, %r1, 3, 31, -1;", "bar.warp.sync -1;", "bar.sync 0;",
                             "vote.sync.ballot.b32 %r2, %p1, -1;"}) {
        CAPTURE(what);
        Bench bench;
        CHECK_THROWS_WITH_AS(bench.run(part + what + "\n$END:"), doctest::Contains("lanes 0-7"), Fault);
    }
    Bench bench;
    CHECK_THROWS_WITH_AS(bench.run("mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 7; @%p1 bra.uni $END; $END:"),
                         doctest::Contains("only lanes 8-31 of lanes 0-31 take the branch"), Fault);
    bench.run("mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 31; @%p1 bra.uni $END; $END:");
    bench.run(part + "shfl.sync.idx.b32 %r2|%p2, %r1, 3, 31, 255;\n$END:");  // these are named alone
}

TEST_CASE("barriers gather the block; a warp that ended is missed") {
    Bench bench;
    bench.launch.threads = 256;
    bench.launch.shared_bytes = 2048;
    for (u64 seed = 1; seed < 10; ++seed) {
        bench.options.seed = seed;
        bench.run(kOwnWord +
                  "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 8; mov.u64 %rd3, dynamic; add.s64 %rd4, %rd3, %rd2;\n"
                  "cvt.u64.u32 %rd5, %r1; st.shared.u64 [%rd4], %rd5; bar.sync 0; sub.s64 %rd6, 2040, %rd2;\n"
                  "add.s64 %rd7, %rd3, %rd6; ld.shared.u64 %rd8, [%rd7]; st.global.u64 [%rd1], %rd8;");
        for (u32 t = 0; t < 256; ++t) CHECK(bench.data[t] == 255 - t);
    }
    CHECK_THROWS_WITH_AS(bench.run("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 ret; bar.sync 0;"),
                         doctest::Contains("but warp 0 has ended"), Fault);
}

TEST_CASE("a block's barriers are counted as far as accesses are told apart by them") {
    const auto barriers = [](int count) {
        return "mov.u32 %r1, 0; $L: bar.sync 0; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, " + std::to_string(count) +
               "; @%p1 bra $L;";
    };
    Bench bench;
    bench.run(barriers(65535));
    CHECK_THROWS_WITH_AS(bench.run(barriers(65536)), doctest::Contains("more than 65535 barriers of a block"), Fault);
}

TEST_CASE("warps meet at one bar.sync, or at any barrier.sync of the same number") {
    const auto at_two_places = [](const std::string& first, const std::string& second) {
        return "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bra $LOWER;\n" + first +
               "bra $END;\n$LOWER: " + second + "\n$END:";
    };
    Bench bench;
    bench.launch.threads = 64;
    const auto refused = [&](const std::string& body, const char* why) {
        CHECK_THROWS_WITH_AS(bench.run(body), doctest::Contains(why), Fault);
    };
    const std::string plain = "bar.sync 0;", counted = "barrier.sync 1, 64;";
    bench.run(at_two_places(counted, counted));
    refused(at_two_places(plain, plain), "but warp 1 waits at bench, PTX line 17, lanes 0-31; block (0, 0)");
    refused(at_two_places(counted, "barrier.sync 2, 64;"), "but warp 1 waits at");
    refused(at_two_places(counted, plain), "but warp 1 waits at");
    refused("barrier.sync 1, 32;", "it waits for 32 threads, and the block has 64");
    refused("barrier.sync 16, 64;", "barriers of a count of threads are known from 1 to 15");
    refused("bar.sync 1;", "bar.sync is known for barrier 0 alone");
}

/// Each thread stores its word of shared memory and loads that of thread `tid ^ %r9`.
std::string exchange(int mask, const std::string& between) {
    return "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 8; mov.u64 %rd3, dynamic; add.s64 %rd4, %rd3, %rd2;\n"
           "xor.b32 %r2, %r1, " +
           std::to_string(mask) +
           "; mul.wide.u32 %rd6, %r2, 8; add.s64 %rd7, %rd3, %rd6;\n"
           "st.shared.u64 [%rd4], 1;" +
           between;
}
const std::string kLoadOther = "ld.shared.u64 %rd8, [%rd7];", kStoreOther = "st.shared.u64 [%rd7], 2;";

TEST_CASE("what threads exchange takes a barrier of both, under every order") {
    for (u64 seed = 1; seed <= 10; ++seed) {
        CAPTURE(seed);
        Bench bench;
        bench.launch.threads = 64;
        bench.launch.shared_bytes = 512;
        bench.options.seed = seed;
        const auto race = [&](int mask, const std::string& between, const std::string& message) {
            CAPTURE(mask);
            CAPTURE(between);
            CHECK_THROWS_WITH_AS(bench.run(exchange(mask, between)), doctest::Contains(message.c_str()), Fault);
        };
        race(1, kLoadOther, "is read without a barrier after it was written by warp");
        race(1, kStoreOther, "is written without a barrier after it was written by warp");
        race(1, "bar.warp.sync -1;" + kLoadOther + "st.shared.u64 [%rd4], 2;",
             "is written without a barrier after it was read by warp");
        race(1, "shfl.sync.idx.b32 %r5|%p1, %r1, 0, 31, -1;" + kLoadOther, "is read without a barrier");
        race(32, "bar.warp.sync -1;" + kStoreOther, "is written without a barrier");
        bench.run(exchange(1, "bar.warp.sync -1;" + kLoadOther + "bar.warp.sync -1; st.shared.u64 [%rd4], 2;"));
        bench.run(exchange(33, "bar.sync 0;" + kLoadOther + "bar.sync 0; st.shared.u64 [%rd4], 2;"));
    }
}

// ---- Shuffles and votes ---------------------------------------------------------------------------------------------

TEST_CASE("shuffles take their lanes within segments") {
    const struct {
        const char* shuffle;
        u32 expected[4];  // of lanes 0, 1, 9, 31; the predicate as bit 8
    } kCases[] = {
        {"shfl.sync.idx.b32 %r2|%p1, %r1, 5, 31, -1;", {0x105, 0x105, 0x105, 0x105}},
        {"shfl.sync.bfly.b32 %r2|%p1, %r1, 3, 31, -1;", {0x103, 0x102, 0x10a, 0x11c}},
        {"shfl.sync.up.b32 %r2|%p1, %r1, 1, 0, -1;", {0x000, 0x100, 0x108, 0x11e}},
        {"shfl.sync.down.b32 %r2|%p1, %r1, 1, 31, -1;", {0x101, 0x102, 0x10a, 0x01f}},
        {"shfl.sync.idx.b32 %r2|%p1, %r1, 5, 6175, -1;", {0x105, 0x105, 0x10d, 0x11d}},  // segments of 8: c = 0x181f
    };
    for (const auto& test : kCases) {
        CAPTURE(test.shuffle);
        Bench bench;
        bench.run(kOwnWord + "mov.u32 %r1, %tid.x; " + test.shuffle +
                  "selp.b32 %r3, 256, 0, %p1; or.b32 %r4, %r2, %r3; st.global.u32 [%rd1], %r4;");
        const u32 lanes[4] = {0, 1, 9, 31};
        for (int i = 0; i < 4; ++i) CHECK(bench.data[lanes[i]] == test.expected[i]);
    }
}

TEST_CASE("a ballot has a bit for each lane that agrees") {
    Bench bench;
    bench.run(kOwnWord +
              "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3; setp.eq.s32 %p1, %r2, 1;"
              "vote.sync.ballot.b32 %r3, %p1, -1; st.global.u32 [%rd1], %r3;");
    CHECK(bench.data[0] == 0x22222222);
    CHECK(bench.data[31] == 0x22222222);
}

// ---- Tensor cores ---------------------------------------------------------------------------------------------------

/// Registers %r0-%r3 of each lane become words 2 and 3 of its four.
std::string store_four_registers() {
    return "mov.u32 %r60, %tid.x; mul.wide.u32 %rd60, %r60, 16; add.s64 %rd61, %rd0, %rd60;"
           "st.global.v4.u32 [%rd61], {%r10, %r11, %r12, %r13};";
}

TEST_CASE("ldmatrix spreads rows over lanes, and columns where transposed") {
    for (const bool is_transposed : {false, true}) {
        Bench bench;
        bench.launch.shared_bytes = 512;
        // Element (row, column) of matrix m is 64 m + 8 row + column; each lane writes its own row, backwards in
        // memory.
        std::string body =
            "mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 16; mov.u64 %rd2, dynamic; sub.s64 %rd3, 496, %rd1;"
            "add.s64 %rd4, %rd2, %rd3; cvt.u32.u64 %r2, %rd4; shl.b32 %r3, %r1, 3;\n";
        for (int i = 0; i < 8; ++i) {
            const std::string number = std::to_string(i);
            body += "add.s32 %r4, %r3, " + number + "; cvt.u16.u32 %rs1, %r4; st.shared.u16 [%rd4+" +
                    std::to_string(2 * i) + "], %rs1;\n";
        }
        bench.run(body + "bar.warp.sync -1; ldmatrix.sync.aligned.m8n8.x4" + (is_transposed ? ".trans" : "") +
                  ".shared.b16 {%r10, %r11, %r12, %r13}, [%r2];" + store_four_registers());
        const u32* words = reinterpret_cast<const u32*>(bench.data.data());
        for (u32 l = 0; l < 32; ++l) {
            for (u32 m = 0; m < 4; ++m) {
                const u32 row = l / 4, column = l % 4 * 2;
                const u32 low = is_transposed ? 64 * m + 8 * column + row : 64 * m + 8 * row + column;
                const u32 high = is_transposed ? low + 8 : low + 1;
                CHECK(words[4 * l + m] == (low | high << 16));
            }
        }
    }
}

/// Small whole numbers, so that sums are exact whatever the order.
int a_of(int row, int k) {
    return (5 * row + 3 * k) % 7 - 3;
}
int b_of(int k, int column) {
    return (2 * k + 7 * column) % 5 - 2;
}

template <class Format>
u32 pair(int low, int high) {
    return Format::narrow(low) | static_cast<u32>(Format::narrow(high)) << 16;
}

template <class Format>
void check_product(const char* type) {
    Bench bench;
    auto* words = reinterpret_cast<u32*>(bench.data.data());
    constexpr int kWords = 8;  // of each lane: A's four registers, B's two
    for (int l = 0; l < 32; ++l) {
        // ISA: groupID = laneid >> 2, threadID_in_group = laneid % 4; the rows and columns of a0..a7, b0..b3, c0..c3.
        const int group = l >> 2, in_group = l % 4;
        for (int i = 0; i < 8; i += 2) {
            const int row = (i < 2 || (i >= 4 && i < 6)) ? group : group + 8, k = in_group * 2 + (i < 4 ? 0 : 8);
            words[kWords * l + i / 2] = pair<Format>(a_of(row, k), a_of(row, k + 1));
        }
        for (int i = 0; i < 4; i += 2) {
            const int k = in_group * 2 + (i < 2 ? 0 : 8);
            words[kWords * l + 4 + i / 2] = pair<Format>(b_of(k, group), b_of(k + 1, group));
        }
    }
    bench.run(
        "mov.u32 %r60, %tid.x; mul.wide.u32 %rd60, %r60, 32; add.s64 %rd61, %rd0, %rd60;"
        "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd61]; ld.global.v2.u32 {%r5, %r6}, [%rd61+16];"
        "cvt.rn.f32.s32 %f1, %r60; mul.f32 %f2, %f1, 0f42800000;\n"  // c: 64 times the lane, and so on
        "mma.sync.aligned.m16n8k16.row.col.f32." +
        std::string(type) + "." + type +
        ".f32 {%r10, %r11, %r12, %r13}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f1, %f2};\n" +
        "bar.warp.sync -1;" + store_four_registers());
    for (int l = 0; l < 32; ++l) {
        for (int i = 0; i < 4; ++i) {
            const int row = (l >> 2) + (i < 2 ? 0 : 8), column = (l % 4) * 2 + (i & 1);
            int sum = i % 2 == 0 ? l : 64 * l;
            for (int k = 0; k < 16; ++k) sum += a_of(row, k) * b_of(k, column);
            CHECK(std::bit_cast<float>(words[4 * l + i]) == static_cast<float>(sum));
        }
    }
}

TEST_CASE("mma multiplies matrices laid out as the ISA says") {
    check_product<Float16>("f16");
    check_product<BFloat16>("bf16");
}

/// 1 + `count` products of 2^-24, where all are one group.
float one_and_tiny(int count, Sums sums) {
    u16 a[16] = {}, b[16] = {};
    for (int i = 0; i < count; ++i) a[i] = Float16::narrow(0x1p-12), b[i] = Float16::narrow(0x1p-12);
    return sum_of_products(a, b, 1.0F, sums);
}

TEST_CASE("sums are cut as narrow as the option says") {
    constexpr Sums kNarrow{4, 23}, kAmpere{8, 24}, kHopper{16, 25}, kExact{0, 0};
    CHECK(one_and_tiny(4, kNarrow) == 1.0F);             // each is cut: below 2^-23
    CHECK(one_and_tiny(4, kAmpere) == 1.0F + 0x1p-22F);  // each is kept
    CHECK(one_and_tiny(3, kHopper) == 1.0F + 0x1p-23F);  // 1.5 units of float32, toward zero
    CHECK(one_and_tiny(3, kExact) == 1.0F + 0x1p-22F);   // 1.5 units, to nearest even
    u16 a[16] = {Float16::narrow(-1)}, b[16] = {Float16::narrow(0x1p-24)};
    CHECK(sum_of_products(a, b, 1.0F, kExact) == 1.0F - 0x1p-24F);
    CHECK(sum_of_products(a, b, 1.0F, kNarrow) == 1.0F);  // magnitudes are cut, not rounded down
    CHECK(sum_of_products(a, b, HUGE_VALF, kNarrow) == HUGE_VALF);
    u16 most[16], two[16];
    for (int i = 0; i < 16; ++i) most[i] = two[i] = Float16::narrow(65504);
    CHECK(sum_of_products(most, two, 0.0F, kNarrow) == doctest::Approx(16 * 65504.0 * 65504.0).epsilon(1e-6));
    CHECK(sum_of_products(most, two, 3.4e38F, kNarrow) == 3.4e38F);
    a[0] = 0x7c00, b[0] = Float16::narrow(-1);
    CHECK(sum_of_products(a, b, 1.0F, kNarrow) == -HUGE_VALF);
    b[0] = 0;
    CHECK(std::isnan(sum_of_products(a, b, 1.0F, kNarrow)));
    a[0] = 0x0001, b[0] = Float16::narrow(1);  // the smallest subnormal number
    CHECK(sum_of_products(a, b, 0.0F, kNarrow) == 0x1p-24F);
}

}  // namespace
}  // namespace kvjit::ptx

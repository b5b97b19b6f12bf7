// wgmma: what the ISA leaves undefined is a fault, which names the instruction and the line.
#include <doctest/doctest.h>

#include <string>

#include "ptx/warpgroup_lab.h"

namespace kvjit::ptx {
namespace {

constexpr u32 kBytes = 4096;  // of shared memory: zeros

/// A: 64 rows from byte 0; B: up to 64 columns from byte 2048, neither swizzled.
const std::string kDescriptors = "mov.u64 %rd40, " + std::to_string(descriptor(0, 1024, 128, 0)) + "; mov.u64 %rd41, " +
                                 std::to_string(descriptor(2048, 1024, 128, 0)) + ";\n";
const std::string kStaged = stage(kBytes) + kPublish + kDescriptors;

/// D = A B in registers from `first` on, or D += A B.
std::string product(int n = 8, int first = 0, bool accumulates = false) {
    return wgmma("f16", n) + registers("%f", first, n / 2) + ", %rd40, %rd41, " + (accumulates ? "1" : "0") +
           ", 1, 1, 0, 0;\n";
}
std::string product_of_fragment(int n = 8, int first = 0, int fragment = 20) {
    return wgmma("f16", n) + registers("%f", first, n / 2) + ", " + registers("%r", fragment, 4) +
           ", %rd41, 0, 1, 1, 0;\n";
}
const std::string kFragment = "mov.u32 %r20, 0; mov.u32 %r21, 0; mov.u32 %r22, 0; mov.u32 %r23, 0;\n";
const std::string kBarrier = "bar.sync 0;\n";

/// `what`, by the threads of one warp.
std::string by_warp(int warp, const std::string& what) {
    static int labels = 0;
    const std::string label = "$OTHERS" + std::to_string(++labels);
    return "shr.u32 %r50, %r1, 5; setp.ne.s32 %p5, %r50, " + std::to_string(warp) + "; @%p5 bra " + label + ";\n" +
           what + label + ":\n";
}

/// The faults of six orders of the warps, "" where the body runs in all of them. It does so in all or in none.
std::string fault_of(const std::string& body, u32 threads = 128) {
    std::string all;
    u64 count = 0;
    for (u64 seed = 1; seed <= 6; ++seed) {
        Bench bench(kBytes);
        bench.launch.threads = threads;
        bench.launch.shared_bytes = kBytes;
        bench.options.seed = seed;
        try {
            bench.run(body);
        } catch (const Fault& fault) {
            const std::string text = fault.what();
            CHECK(text.contains("PTX line "));
            all += text + "\n";
            ++count;
        }
        CHECK((count == 0 || count == seed));
    }
    return all;
}

void refused(const std::string& body, const std::string& message) {
    CAPTURE(body);
    const std::string fault = fault_of(body);
    CHECK_MESSAGE(fault.contains(message), fault);
}

void allowed(const std::string& body) {
    CHECK(fault_of(body) == "");
}

// ---- Registers ---------------------------------------------------------------------------------------------------

TEST_CASE("accumulators can't be touched before the wait that covers them") {
    allowed(kStaged + kFence + product() + kWait + "add.f32 %f9, %f0, %f1; mov.f32 %f2, %f9;");
    const std::string pending = kStaged + kFence + product();
    const std::string read = "register %f3 is read before the operation that uses it was waited for";
    refused(pending + "add.f32 %f9, %f3, %f3;", "add.f32: " + read);
    refused(pending + "mov.f32 %f9, %f3;", read);
    refused(pending + "mov.f32 %f3, 0f00000000;", "register %f3 is written before");
    refused(pending + "st.global.f32 [%rd0], %f3;", read);
    refused(pending + kCommit + "add.f32 %f9, %f3, %f3;", read);
    refused(pending + "wgmma.wait_group.sync.aligned 0; add.f32 %f9, %f3, %f3;", read);  // not committed
}

TEST_CASE("a wait leaves the latest groups") {
    const std::string two = kStaged + kFence + product(8, 0) + kCommit + product(8, 4) + kCommit;
    allowed(two + "wgmma.wait_group.sync.aligned 1; add.f32 %f9, %f3, %f3;");
    refused(two + "wgmma.wait_group.sync.aligned 1; add.f32 %f9, %f4, %f4;", "%f4 is read before");
    refused(two + "wgmma.wait_group.sync.aligned 2; add.f32 %f9, %f3, %f3;", "%f3 is read before");
    allowed(two + "wgmma.wait_group.sync.aligned 0; add.f32 %f9, %f4, %f3;");
}

TEST_CASE("operations of one shape add to the same registers without a wait, those of two don't") {
    allowed(kStaged + kFence + product() + product(8, 0, true) + kCommit + product(8, 0, true) + kWait);
    allowed(kStaged + kFence + product() + kWait + product(8, 0, true) + kWait);  // without a fence
    refused(kStaged + kFence + product(16) + product(8, 0, true),
            "register %f0 becomes an accumulator of another shape before the operation that uses it was waited for");
    refused(kStaged + kFence + product(16) + kFence + product(8, 0, true), "an accumulator of another shape");
    refused(kStaged + kFence + product(16) + kWait + product(8, 0, true),
            "register %f0 was an accumulator of m64n16k16, and is added to without a wgmma.fence after that");
    allowed(kStaged + kFence + product(16) + kWait + kFence + product(8, 0, true) + kWait);
    refused(kStaged + kFence + product() + kWait + "add.f32 %f9, %f0, %f0;" + product(8, 0, true),
            "register %f0 was read, and is added to without a wgmma.fence");
    refused(kStaged + kFence + product(8, 0, true), "register %f0 is read, but was never written");
}

TEST_CASE("a wgmma.fence comes before the first operation, and after accesses to its registers") {
    refused(kStaged + product(), "no wgmma.fence comes before the first operation");
    const std::string zero = "mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n";
    refused(kStaged + kFence + zero + product(8, 0, true),
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16: register %f0 was written, and is added to without a "
            "wgmma.fence after that");
    refused(kStaged + kFence + "mov.f32 %f2, 0f00000000;" + product(),
            "register %f2 was written, and is added to without a wgmma.fence");
    allowed(kStaged + zero + kFence + product(8, 0, true) + kWait);
    refused(kStaged + kFence + kFragment + product_of_fragment(),
            "register %r20 was written, and is a fragment of A without a wgmma.fence after that");
    allowed(kStaged + kFragment + kFence + "add.s32 %r9, %r20, %r21;" + product_of_fragment() + kWait);
}

TEST_CASE("fragments of A can't be touched before the wait either, but for other operations that read them") {
    const std::string pending = kStaged + kFragment + kFence + product_of_fragment();
    refused(pending + "add.s32 %r9, %r20, 1;", "register %r20 is read before the operation");
    refused(pending + "mov.u32 %r20, 1;", "register %r20 is written before the operation");
    allowed(pending + product_of_fragment(8, 4) + kWait + "mov.u32 %r20, 1;");
    refused(pending + wgmma("f16", 8) + "{%r20, %f1, %f2, %f3}, %rd40, %rd41, 0, 1, 1, 0, 0;",
            "register %r20 becomes an accumulator of another shape");
    refused(pending + wgmma("f16", 8) + "{%f4, %f5, %f6, %f7}, {%f0, %f1, %f2, %f3}, %rd41, 0, 1, 1, 0;",
            "register %f0 becomes a fragment of A before");
    refused(pending + kWait + wgmma("f16", 8) + "{%f4, %f5, %f6, %f7}, {%f0, %f1, %f2, %f3}, %rd41, 0, 1, 1, 0;",
            "register %f0 was an accumulator of m64n8k16, and is a fragment of A without a wgmma.fence");
    refused(kStaged + kFence + product_of_fragment(), "register %r20 is read, but was never written");
}

// ---- Shared memory -----------------------------------------------------------------------------------------------

TEST_CASE("what wgmma reads was published to the async proxy, and a barrier followed") {
    const std::string read = kDescriptors + kFence + product() + kWait;
    refused(stage(kBytes) + kBarrier + read,
            "is read in the async proxy without a fence.proxy.async of warp 0, lane 0, which wrote it");
    refused(stage(kBytes) + "fence.proxy.async;" + read, "without a barrier since the fence.proxy.async of warp");
    refused(stage(kBytes) + kBarrier + "fence.proxy.async;" + read, "without a barrier since the fence.proxy.async");
    refused("fence.proxy.async;" + stage(kBytes) + kBarrier + read, "without a fence.proxy.async of warp");
    refused(stage(kBytes) + by_warp(0, "fence.proxy.async;\n") + kBarrier + read,
            "without a fence.proxy.async of warp 2, lane 0, which wrote it");
    allowed(stage(kBytes) + "fence.proxy.async.shared::cta;" + kBarrier + kBarrier + read);
    // A write after the fence needs another one, and only what was written.
    const std::string store = kStaged +
                              "setp.ne.s32 %p6, %r1, 9; @%p6 bra $STORED; mov.u16 %rs1, 0;"
                              "st.shared.u16 [dynamic+36], %rs1;\n$STORED:\n";
    refused(store + kBarrier + read, "byte 36 of shared memory is read in the async proxy without a fence");
    allowed(store + kPublish + read);
}

/// Copies 16 bytes of the buffer to byte 2048 of shared memory, by thread 40.
const std::string kCopy =
    "mov.u64 %rd50, dynamic; cvt.u32.u64 %r40, %rd50; setp.ne.s32 %p6, %r1, 40; @%p6 bra $COPYING;\n"
    "cp.async.cg.shared.global [%r40+2048], [%rd0], 16;\n$COPYING: cp.async.commit_group;\n";
const std::string kCopied = "cp.async.wait_group 0;\n";

TEST_CASE("copies are published after their wait") {
    const std::string read = kFence + product() + kWait;
    allowed(kStaged + kCopy + kCopied + kPublish + read);
    refused(kStaged + kCopy + "fence.proxy.async;" + kCopied + kBarrier + read,
            "byte 2048 of shared memory is read in the async proxy without a fence.proxy.async of warp 1, lane 8");
    refused(kStaged + kCopy + kPublish + read,
            "byte 2048 of shared memory is read while an asynchronous copy to it is under way");
    // Bytes that arrive between two reads are published for neither.
    for (u64 seed = 1; seed <= 20; ++seed) {
        Bench bench(kBytes);
        bench.launch.threads = 128;
        bench.launch.shared_bytes = kBytes;
        bench.options.seed = seed;
        bench.options.copies = Copies::kAtWait;
        CHECK_THROWS_WITH_AS(bench.run(kStaged + kCopy + read + kCopied + product() + kWait),
                             doctest::Contains("byte 2048 of shared memory is "), Fault);
    }
}

TEST_CASE("what an operation reads is not overwritten before its wait, nor by other warps before a barrier after it") {
    const std::string store = "st.shared.u32 [dynamic+2048], 1;\n", pending = kStaged + kFence + product();
    const auto by_thread_40 = [](const std::string& what) {
        return "setp.ne.s32 %p6, %r1, 40; @%p6 bra $SKIP;\n" + what + "$SKIP:\n";
    };
    const std::string message =
        "byte 2048 of shared memory is written while a wgmma.mma_async that reads it has not been";
    refused(pending + by_thread_40(store), message);
    refused(pending + kBarrier + by_thread_40(store), message);
    refused(pending + kBarrier + kCopy, message);
    const std::string waited = pending + kWait + by_thread_40(store);
    for (u64 seed = 1; seed <= 6; ++seed) {  // other warps wait before, after, or have yet to begin
        Bench bench(kBytes);
        bench.launch.threads = 128;
        bench.launch.shared_bytes = kBytes;
        bench.options.seed = seed;
        CHECK_THROWS_AS(bench.run(waited), Fault);
    }
    refused(pending + kBarrier + kWait + by_thread_40(store), "byte 2048 of shared memory is ");
    allowed(pending + kWait + kBarrier + by_thread_40(store));
    allowed(pending + kWait + kBarrier + kCopy + kCopied);
    allowed(pending + by_thread_40("st.shared.u32 [dynamic+3584], 1;\n") + kWait);  // it reads none of these
}

TEST_CASE("wgmma reads inside of the block's shared memory, what was written") {
    const auto with_b = [](u64 bits) { return "mov.u64 %rd41, " + std::to_string(bits) + ";\n" + kFence + product(); };
    refused(kStaged + with_b(descriptor(kBytes - 128, 128, 128, 0)),
            "16 bytes at 4096 of shared memory; the block has 4096");
    refused(stage(2064) + kPublish + kDescriptors + kFence + product(),
            "of shared memory is read, but was never written");
    refused(kStaged + with_b(descriptor(2048, 0, 1024, 0, 1)), "has a base offset, but no swizzle");
}

// ---- Warps -------------------------------------------------------------------------------------------------------

TEST_CASE("the warps of a warpgroup execute the same") {
    const std::string begin = kStaged + kFence;
    refused(begin + by_warp(2, "mov.u64 %rd41, " + std::to_string(descriptor(2048, 1024, 256, 0)) + ";\n") + product() +
                kWait,
            "another warp of the warpgroup has another descriptor of B");
    refused(
        begin + by_warp(2, "mov.u64 %rd40, " + std::to_string(descriptor(0, 1024, 256, 0)) + ";\n") + product() + kWait,
        "another warp of the warpgroup has another descriptor of A");
    refused(begin + product() + by_warp(1, kFence) + kWait, "instead; block (0, 0), warp");
    refused(begin + by_warp(3, "ret;\n") + product() + kWait,
            "warp 3 has ended, but another warp of its warpgroup has executed the wgmma of bench, PTX line ");
    refused(begin + by_warp(3, kBarrier + "ret;\n") + product() + kWait + kBarrier, "warp 3 waits at bench, PTX line ");
    refused(begin + by_warp(1, product()) + kWait,
            "another warp of the warpgroup executed the instruction of bench, PTX");
}

TEST_CASE("a scale-d that differs is noticed, in a warp and between warps") {
    const std::string text = wgmma("f16", 8) + "{%f0, %f1, %f2, %f3}, %rd40, %rd41, %p7, 1, 1, 0, 0;\n";
    const std::string zero =
        "mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, "
        "0f00000000;\n";
    const std::string begin = kStaged + zero + kFence;
    const std::string between = fault_of(begin + "setp.lt.u32 %p7, %r1, 64;" + text);
    CHECK(between.contains("another warp of the warpgroup adds to D"));
    CHECK(between.contains("another warp of the warpgroup does not add to D"));
    refused(begin + "and.b32 %r9, %r1, 1; setp.eq.s32 %p7, %r9, 0;" + text, "the warp's lanes differ in scale-d");
    refused(begin + "and.b32 %r9, %r1, 1; setp.eq.s32 %p7, %r9, 0; @%p7 mov.u64 %rd41, 0;" + product(),
            "the warp's lanes differ in the descriptor of B");
}

TEST_CASE("a warpgroup is four whole warps") {
    CHECK(fault_of(stage(kBytes) + kFence, 96).contains("a warpgroup has four warps, but the block's 96 threads"));
    CHECK(fault_of(stage(kBytes) + kFence, 256) == "");
    CHECK(fault_of("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 128; @%p1 ret;" + kFence, 160)
              .contains("a warpgroup has four warps, but the block's 160 threads"));
    refused(kStaged + kFence + "setp.lt.u32 %p7, %r1, 8; @%p7 " + product(), "only lanes 0-7");
    // Two warpgroups need not agree.
    CHECK(fault_of(kStaged + kFence + "setp.lt.u32 %p7, %r1, 128; @%p7 bra $FIRST;\n" + product(16) + kWait +
                       "bra.uni $END;\n$FIRST:\n" + product(8) + product(8) + kWait + "$END:\n",
                   256) == "");
}

TEST_CASE("numbers and operands that wgmma does not take are refused") {
    const std::string begin = kStaged + kFence + wgmma("f16", 8) + "{%f0, %f1, %f2, %f3}, %rd40, %rd41, 0, ";
    refused(begin + "2, 1, 0, 0;", "imm-scale-a is 2, expected -1 or 1");
    refused(begin + "1, 0, 0, 0;", "imm-scale-b is 0, expected -1 or 1");
    refused(begin + "1, 1, 2, 0;", "imm-trans-a is 2, expected 0 or 1");
    refused(begin + "1, 1, 0, -1;", "imm-trans-b is -1, expected 0 or 1");
    refused(begin + "1, 1, 0;", "is not known with these operands");
    refused(wgmma("f16", 8) + "{%f0, %f1, %f2}, %rd40, %rd41, 0, 1, 1, 0, 0;", "is not known with these operands");
    refused(wgmma("f16", 12) + "{%f0, %f1, %f2, %f3}, %rd40, %rd41, 0, 1, 1, 0, 0;", "is not known");
}

TEST_CASE("registers of a scope end with it") {
    Bench bench;
    bench.run("{ .reg .b32 a, b1; mov.u32 a, 5; add.s32 b1, a, 1; st.global.u32 [%rd0], b1; }");
    CHECK(bench.data[0] == 6);
    refused("{ .reg .b32 a; mov.u32 a, 5; }\n{ .reg .b32 a; add.s32 %r1, a, 1; }", "register a is read, but was never");
    refused("{ .reg .b32 a; mov.u32 a, 5; }\n mov.u32 %r1, a;", "is not known with these operands");
    CHECK_THROWS_WITH_AS(bench.run("{ .reg .b32 a; { .reg .b32 a; } }"),
                         doctest::Contains("the register a is declared already"), Fault);
}

}  // namespace
}  // namespace kvjit::ptx

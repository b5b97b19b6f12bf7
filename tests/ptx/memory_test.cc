// Memory: every load and store, what is refused, asynchronous copies, and what other blocks see.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "ptx/lab.h"
#include "ptx/machine/instructions.h"

namespace kvjit::ptx {
namespace {

/// The fault of a body; its message. Fails where there is none.
std::string fault_of(Bench& bench, const std::string& body, FaultKind kind) {
    try {
        bench.run(body);
    } catch (const Fault& fault) {
        CHECK(fault.kind() == kind);
        return fault.what();
    }
    FAIL("no fault: " << body);
    return {};
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// ---- Loads and stores ----------------------------------------------------------------------------------------------

/// What a name says of an access: "ld.shared.v2.u32".
struct Access {
    std::string space, type;
    std::size_t count = 1;
    std::size_t bytes() const { return static_cast<std::size_t>(std::stoi(type.substr(1))) / 8; }
};

Access access_of(std::string_view name) {
    Access access;
    std::string rest(name.substr(3));
    access.type = rest.substr(rest.rfind('.') + 1);
    for (const char* space : {"param", "global", "shared"}) {
        if (contains(rest, space)) access.space = space;
    }
    if (contains(rest, ".v2.") || rest.starts_with("v2.")) access.count = 2;
    if (contains(rest, ".v4.") || rest.starts_with("v4.")) access.count = 4;
    return access;
}

std::string list_of(std::string_view letters, bool in_braces) {
    std::string text;
    for (std::size_t i = 0; i < letters.size(); ++i) {
        const char* prefix = letters[i] == 'h' ? "%rs" : letters[i] == 'w' ? "%r" : "%rd";
        text += (i == 0 ? "" : ", ") + std::string(prefix) + std::to_string(10 + i);
    }
    return in_braces ? "{" + text + "}" : text;
}

/// As 64-bit words from word 16 of the buffer on.
std::string drain(std::string_view letters) {
    std::string text;
    for (std::size_t i = 0; i < letters.size(); ++i) {
        const std::string number = std::to_string(10 + i), to = "[%rd0+" + std::to_string(128 + 8 * i) + "]";
        if (letters[i] == 'h') text += "cvt.u64.u16 %rd" + number + ", %rs" + number + ";";
        if (letters[i] == 'w') text += "cvt.u64.u32 %rd" + number + ", %r" + number + ";";
        text += "st.global.u64 " + to + ", %rd" + number + ";\n";
    }
    return text;
}

u64 mask_of(std::size_t bytes) {
    return bytes == 8 ? ~u64{0} : (u64{1} << (8 * bytes)) - 1;
}

/// `bits` of a register of the letter's width.
u64 in_register(char letter, u64 bits) {
    return bits & (letter == 'h' ? 0xffff : letter == 'w' ? 0xffffffff : ~u64{0});
}

constexpr u64 kPattern[2] = {0x9182a3b4c5d6e7f8, 0x0192837465a4b3c2};

void check_load(const InstructionRow& row) {
    const Access access = access_of(row.name);
    const std::string_view letters = row.operands.substr(0, row.operands.find('='));
    Bench bench(64);
    bench.launch.threads = 1;
    bench.launch.shared_bytes = 64;
    bench.data[0] = kPattern[0], bench.data[1] = kPattern[1];
    std::string body = "mov.u64 %rd1, %rd0;\n";
    if (access.space == "shared")
        body = "mov.u64 %rd1, dynamic; ld.global.v2.u64 {%rd2, %rd3}, [%rd0]; st.shared.v2.u64 [%rd1], {%rd2, %rd3};\n";
    body += std::string(row.name) + " " + list_of(letters, access.count > 1) + ", [%rd1];\n";
    bench.run(body + drain(letters));
    for (std::size_t i = 0; i < access.count; ++i) {
        const std::size_t bit = 8 * i * access.bytes();
        u64 expected = kPattern[bit / 64] >> bit % 64 & mask_of(access.bytes());
        const bool is_negative = access.type[0] == 's' && (expected >> (8 * access.bytes() - 1) & 1) != 0;
        if (is_negative) expected |= ~mask_of(access.bytes());
        CHECK(bench.data[16 + i] == in_register(letters[i], expected));
    }
}

void check_store(const InstructionRow& row) {
    const Access access = access_of(row.name);
    const std::string_view letters = row.operands.substr(2);
    Bench bench(64);
    bench.launch.threads = 1;
    bench.launch.shared_bytes = 64;
    const bool is_shared = access.space == "shared";
    std::string body = is_shared ? "mov.u64 %rd1, dynamic; mov.u64 %rd9, 0; st.shared.v2.u64 [%rd1], {%rd9, %rd9};\n"
                                 : "add.s64 %rd1, %rd0, 128;\n";
    for (std::size_t i = 0; i < letters.size(); ++i) {
        const std::string number = std::to_string(10 + i), word = "[%rd0+" + std::to_string(8 * i) + "]";
        const char* prefix = letters[i] == 'h' ? "%rs" : letters[i] == 'w' ? "%r" : "%rd";
        const char* type = letters[i] == 'h' ? "u16 " : letters[i] == 'w' ? "u32 " : "u64 ";
        body += std::string("ld.global.") + type + prefix + number + ", " + word + ";";
        bench.data[i] = kPattern[0] + i;
    }
    body += std::string(row.name) + " [%rd1], " + list_of(letters, access.count > 1) + ";\n";
    if (is_shared)
        body +=
            "ld.shared.v2.u64 {%rd2, %rd3}, [%rd1]; st.global.u64 [%rd0+128], %rd2; st.global.u64 [%rd0+136], %rd3;\n";
    bench.run(body);
    u64 expected[2] = {0, 0};
    for (std::size_t i = 0; i < access.count; ++i) {
        const std::size_t bit = 8 * i * access.bytes();
        expected[bit / 64] |= ((kPattern[0] + i) & mask_of(access.bytes())) << bit % 64;
    }
    CHECK(bench.data[16] == expected[0]);
    CHECK(bench.data[17] == expected[1]);
}

TEST_CASE("loads and stores of all types") {
    for (const InstructionRow& row : instruction_table()) {
        CAPTURE(row.name);
        CAPTURE(row.operands);
        if (row.name.starts_with("ld.") && access_of(row.name).space != "param") check_load(row);
        if (row.name.starts_with("st.")) check_store(row);
    }
}

TEST_CASE("parameters are read by name and by address") {
    Bench bench;
    const u64 address = reinterpret_cast<u64>(bench.data.data());
    bench.run(
        "mov.b64 %rd1, data; ld.param.u32 %r1, [%rd1+4]; ld.param.u16 %rs1, [data]; cvt.u32.u16 %r2, %rs1;"
        "st.global.u32 [%rd0], %r1; st.global.u32 [%rd0+8], %r2;");
    CHECK(bench.data[0] == address >> 32);
    CHECK(bench.data[1] == (address & 0xffff));
    CHECK(contains(fault_of(bench, "ld.param.u64 %rd1, [data+8];", FaultKind::kOutOfBounds),
                   "of the parameters, which have 8"));
}

TEST_CASE("generic addresses reach shared memory through its window") {
    Bench bench;
    bench.launch.threads = 1;
    bench.launch.shared_bytes = 16;
    bench.run(
        "mov.u64 %rd1, dynamic; cvta.shared.u64 %rd2, %rd1; st.u32 [%rd2], 77; ld.shared.u32 %r1, [%rd1];"
        "cvta.to.shared.u64 %rd3, %rd2; ld.shared.u32 %r2, [%rd3]; add.s32 %r3, %r1, %r2;"
        "st.global.u32 [%rd0], %r3;");
    CHECK(bench.data[0] == 154);
    CHECK(contains(fault_of(bench, "cvta.to.shared.u64 %rd1, %rd0;", FaultKind::kUndefined), "another state space"));
}

// ---- What is refused -----------------------------------------------------------------------------------------------

TEST_CASE("accesses that are misaligned or out of bounds are refused, with the place") {
    Bench bench(16);
    const std::string misaligned =
        fault_of(bench, "\n.loc 1 30 5\nld.global.u64 %rd1, [%rd0+4];", FaultKind::kMisaligned);
    CHECK(contains(misaligned, "bench, PTX line 18 (file 1:30), ld.global.u64: an access of 8 bytes"));
    CHECK(contains(misaligned, "block (0, 0), warp 0, lane 0"));
    const std::string outside =
        fault_of(bench, word_of_thread(0) + "ld.global.u64 %rd2, [%rd1];", FaultKind::kOutOfBounds);
    CHECK(contains(outside, "8 bytes at"));
    CHECK(contains(outside, "0x80 bytes from the start of an allocation of 0x80 bytes"));
    CHECK(contains(outside, "lane 16"));
    CHECK(contains(fault_of(bench, "st.global.v4.u32 [%rd0+112], {%r1, %r1, %r1, %r1};", FaultKind::kUnwritten),
                   "register %r1"));
    CHECK(contains(fault_of(bench, "mov.u64 %rd1, 64; st.u16 [%rd1], 7;", FaultKind::kOutOfBounds),
                   "before every allocation"));
    bench.launch.shared_bytes = 32;
    CHECK(contains(fault_of(bench, "st.shared.u32 [dynamic+32], 1;", FaultKind::kOutOfBounds),
                   "4 bytes at 32 of shared memory; the block has 32"));
    CHECK(contains(fault_of(bench, "st.shared.u32 [dynamic+-4], 1;", FaultKind::kOutOfBounds), "4 bytes at -4"));
}

TEST_CASE("shared memory that was never written is not read") {
    Bench bench;
    bench.launch.threads = 1;
    bench.launch.shared_bytes = 32;
    const std::string text =
        fault_of(bench, "st.shared.u16 [dynamic], 1; ld.shared.u32 %r1, [dynamic];", FaultKind::kUnwritten);
    CHECK(contains(text, "byte 2 of shared memory is read, but was never written"));
}

TEST_CASE("a chain of inlined places is told") {
    Bench bench;
    const std::string text = fault_of(
        bench,
        "\n.loc 1 30 5\n.loc 2 17 5, function_name $L__info_string0, inlined_at 1 30 5\nld.global.u64 %rd1, [%rd0+1];",
        FaultKind::kMisaligned);
    CHECK(contains(text, "(file 2:17, inlined at file 1:30)"));
}

TEST_CASE("what is not known is refused, never skipped") {
    Bench bench;
    CHECK(contains(fault_of(bench, "sin.approx.f32 %f1, %f2;", FaultKind::kText),
                   "PTX line 16: the instruction sin.approx.f32 is not known"));
    CHECK(contains(fault_of(bench, "add.s32 %r1, %rd1, %r2;", FaultKind::kText),
                   "the instruction add.s32 is not known with these operands"));
    CHECK(contains(fault_of(bench, "\n.loc 1 30 5\nsin.approx.f32 %f1, %f2;", FaultKind::kText),
                   "bench, PTX line 18 (file 1:30): the instruction sin.approx.f32"));
    CHECK(
        contains(fault_of(bench, "ret; } .visible .entry other() { trap; } .visible .entry last() {", FaultKind::kText),
                 "other, PTX line 16: the instruction trap is not known"));
    CHECK(contains(fault_of(bench, ".local .b8 depot[16];", FaultKind::kText), "'.local' is not known here"));
    CHECK(contains(fault_of(bench, "mov.u32 %r64, 1;", FaultKind::kText), "is not known with these operands"));
    CHECK(contains(fault_of(bench, "mov.u32 %r01, 1;", FaultKind::kText), "is not known with these operands"));
    CHECK(contains(fault_of(bench, "mov.u32 %r, 1;", FaultKind::kText), "is not known with these operands"));
    CHECK(contains(fault_of(bench, ".reg .b32 alone; mov.u32 alone3, 1;", FaultKind::kText),
                   "is not known with these operands"));
    CHECK(contains(fault_of(bench, ".reg .b32 %r<8>;", FaultKind::kText),
                   "PTX line 16: the register %r is declared already"));
    CHECK(contains(fault_of(bench, ".reg .b32 %q3; .reg .b32 %q<4>;", FaultKind::kText), "%q is declared already"));
    CHECK(contains(fault_of(bench, ".reg .b32 %q1<4>;", FaultKind::kText), "a row of registers ends in a digit: %q1"));
    CHECK(contains(fault_of(bench, ".reg .b128 %rq<8>;", FaultKind::kText),
                   "PTX line 16: registers of type .b128 are not known"));
    CHECK(contains(fault_of(bench, "bra $nowhere;", FaultKind::kText), "there is no label $nowhere"));
    CHECK(contains(fault_of(bench, "{ $a: bra $a; } $a: ret;", FaultKind::kText), "the label $a is there twice"));
    CHECK(contains(fault_of(bench, "ld.global.u64 %rd1, [%rd0+4294967296];", FaultKind::kText),
                   "an offset of 4294967296 has over 32 bits"));
    CHECK(
        contains(fault_of(bench, "ld.global.u32 %r1, [table];", FaultKind::kText), "is not known with these operands"));
    CHECK(contains(fault_of(bench, "div.s32 %r1, 7, 0;", FaultKind::kUndefined), "a division by zero"));
}

TEST_CASE("numbers are octal behind 0, binary behind 0b, bits behind 0f") {
    Bench bench;
    for (const auto& [text, number] : {std::pair{"0", 0}, {"10U", 10}, {"010", 8}, {"0b101", 5}, {"0x1FU", 31}}) {
        CAPTURE(text);
        bench.run(std::string("mov.u32 %r3, %tid.x; setp.ne.s32 %p1, %r3, 0; @%p1 ret; mov.u64 %rd1, ") + text +
                  "; st.global.u64 [%rd0], %rd1;");
        CHECK(bench.data[0] == static_cast<u64>(number));
    }
    CHECK(contains(fault_of(bench, "mov.u64 %rd1, 08;", FaultKind::kText), "'08' is no number"));
    CHECK(contains(fault_of(bench, "mov.f32 %f1, -0f3F800000;", FaultKind::kText), "has a minus"));
    CHECK(contains(fault_of(bench, "mov.f32 %f1, 0f3F80;", FaultKind::kText), "is no float of eight digits"));
    CHECK(contains(fault_of(bench, "mov.f32 %f1, 0f3F80000U;", FaultKind::kText), "is no float of eight digits"));
    CHECK(contains(fault_of(bench, "mov.f32 %f1, 0d3FF8000000000000;", FaultKind::kText), "is no number"));
}

TEST_CASE("operands are between commas, vectors in braces") {
    Bench bench;
    CHECK(contains(fault_of(bench, "mov.u32 %r1 7;", FaultKind::kText), "';' is expected in front of '7'"));
    CHECK(contains(fault_of(bench, "mov.u32 %r1,, 7;", FaultKind::kText), "a word is expected in front of ','"));
    CHECK(contains(fault_of(bench, "mov.b64 %rd1, {%r1, %r2;", FaultKind::kText), "'}' is expected in front of ';'"));
    CHECK(contains(fault_of(bench, "mov.b64 %rd1, %r1};", FaultKind::kText), "';' is expected in front of '}'"));
}

TEST_CASE("an instruction that code of the target can't have is refused") {
    const auto refusal = [](const std::string& target, const std::string& instruction) {
        std::string ptx = kernel_of(instruction);
        ptx.replace(ptx.find("sm_90a"), 6, target);
        try {
            parse_module(ptx);
        } catch (const Fault& fault) {
            return std::string(fault.what());
        }
        return std::string();
    };
    for (const std::string target : {"sm_80", "sm_89"})
        CHECK(contains(refusal(target, "fence.proxy.async;"), "fence.proxy.async takes .target sm_90, not " + target));
    for (const std::string target : {"sm_80", "sm_90", "sm_100a", "sm_120"})
        CHECK(contains(refusal(target, "wgmma.fence.sync.aligned;"), "takes .target sm_90a, not " + target));
    for (const std::string target : {"sm_90", "sm_90a", "sm_100a"}) CHECK(refusal(target, "fence.proxy.async;") == "");
    CHECK(refusal("sm_90a", "wgmma.fence.sync.aligned;") == "");
}

// ---- Asynchronous copies -------------------------------------------------------------------------------------------

/// Two groups: words 0-1, then 2-3 of the buffer, of which the wait leaves `pending`; then word 3 is stored as word 5.
std::string copies(int pending) {
    return "mov.u64 %rd1, dynamic; cvt.u32.u64 %r1, %rd1; mov.u32 %r2, 16; mov.u64 %rd9, 9;\n"
           "mov.u32 %r3, %tid.x; setp.ne.s32 %p1, %r3, 0; @%p1 ret;\n"
           "st.shared.v2.u64 [%rd1], {%rd9, %rd9}; st.shared.v2.u64 [%rd1+16], {%rd9, %rd9};\n"
           "cp.async.cg.shared.global [%r1], [%rd0], 16, %r2; cp.async.commit_group;\n"
           "cp.async.ca.shared.global [%r1+16], [%rd0+16], 16; cp.async.commit_group;\n"
           "st.global.u64 [%rd0+24], 8; cp.async.wait_group " +
           std::to_string(pending) + "; ld.shared.u64 %rd2, [%rd1+24]; st.global.u64 [%rd0+40], %rd2;\n";
}

TEST_CASE("bytes of asynchronous copies arrive when the option says") {
    Bench bench;
    bench.launch.shared_bytes = 32;
    bench.data[3] = 7;
    bench.run(copies(0));
    CHECK(bench.data[5] == 8);  // as the buffer was at the wait
    CHECK(contains(fault_of(bench, copies(1), FaultKind::kUnwritten),
                   "byte 24 of shared memory is read while an asynchronous copy to it is under way"));
    bench.data[3] = 7;
    bench.options.copies = Copies::kAtWait;
    bench.run(copies(1));
    CHECK(bench.data[5] == 9);  // not yet
    bench.data[3] = 7;
    bench.options.copies = Copies::kAtIssue;
    bench.run(copies(1));
    CHECK(bench.data[5] == 7);
}

TEST_CASE("a copy reads what it is told to and writes zeros behind, and waits for committed groups alone") {
    Bench bench;
    bench.launch.shared_bytes = 16;
    bench.data[0] = bench.data[1] = ~u64{0};
    const std::string copy =
        "mov.u64 %rd1, dynamic; cvt.u32.u64 %r1, %rd1; mov.u32 %r3, %tid.x; setp.ne.s32 %p1, %r3, 0; @%p1 ret;\n"
        "mov.u32 %r2, 4; cp.async.ca.shared.global [%r1], [%rd0], 8, %r2;";
    bench.run(
        copy +
        "cp.async.commit_group; cp.async.wait_group 0; ld.shared.u64 %rd2, [%rd1]; st.global.u64 [%rd0+16], %rd2;");
    CHECK(bench.data[2] == 0xffffffff);
    fault_of(bench, copy + "cp.async.wait_group 0; ld.shared.u64 %rd2, [%rd1];", FaultKind::kUnwritten);
    fault_of(bench, copy + "st.shared.u64 [%rd1], 1;", FaultKind::kUnwritten);
    // Nothing is read: the address may be any.
    bench.run(
        "mov.u64 %rd1, dynamic; cvt.u32.u64 %r1, %rd1; mov.u32 %r2, 0; mov.u64 %rd2, 64; mov.u32 %r3, %tid.x;"
        "setp.ne.s32 %p1, %r3, 0; @%p1 ret; cp.async.cg.shared.global [%r1], [%rd2], 16, %r2;");
    CHECK(contains(fault_of(bench, "mov.u32 %r1, 1024; cp.async.cg.shared.global [%r1], [%rd0], 8;", FaultKind::kText),
                   "it can't copy 8 bytes"));
    CHECK(contains(
        fault_of(bench, "mov.u32 %r1, 1028; cp.async.ca.shared.global [%r1], [%rd0], 8;", FaultKind::kMisaligned),
        "an access of 8 bytes"));
}

// ---- Blocks ---------------------------------------------------------------------------------------------------------

/// Each block stores 1 to its word behind the counter and counts itself; the last one sums the words to word 20.
std::string sum_of_blocks(const std::string& between) {
    return "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd1, %r2, 8; add.s64 %rd2, %rd0, %rd1;\n"
           "setp.ne.s32 %p1, %r1, 0; @%p1 bra $END; st.global.u32 [%rd2+8], 1;\n" +
           between +
           "atom.relaxed.gpu.add.u32 %r3, [%rd0], 1; mov.u32 %r4, %nctaid.x; sub.s32 %r5, %r4, 1;\n"
           "setp.ne.s32 %p2, %r3, %r5; @%p2 bra $END; fence.acq_rel.gpu; mov.u32 %r6, 0; mov.u32 %r7, 0; mov.u64 %rd3, "
           "%rd0;\n"
           "$NEXT: ld.global.u32 %r8, [%rd3+8]; add.s32 %r6, %r6, %r8; add.s64 %rd3, %rd3, 8; add.s32 %r7, %r7, 1;\n"
           "setp.lt.s32 %p3, %r7, %r4; @%p3 bra $NEXT; st.global.u32 [%rd0+160], %r6;\n$END:";
}

u64 sum_with(const std::string& between, bool is_late) {
    Bench bench;
    bench.launch.blocks_x = 8;
    bench.options.has_late_stores = is_late;
    bench.run(sum_of_blocks(between));
    return bench.data[20];
}

TEST_CASE("other blocks see stores after a fence; without one, when the kernel has ended") {
    CHECK(sum_with("fence.acq_rel.gpu;\n", true) == 8);
    CHECK(sum_with("", true) == 1);  // its own
    CHECK(sum_with("", false) == 8);
}

TEST_CASE("a fence behind the count is no substitute for one before it") {
    int missed = 0;
    for (u64 seed = 1; seed <= 100; ++seed) {
        Bench bench;
        bench.launch.blocks_x = 8;
        bench.options.seed = seed;
        const std::string body = sum_of_blocks("");
        const std::string count = "atom.relaxed.gpu.add.u32 %r3, [%rd0], 1;";
        bench.run(std::string(body).insert(body.find(count) + count.size(), "fence.acq_rel.gpu;"));
        missed += bench.data[20] != 8;
    }
    CHECK(missed > 5);
}

/// Of two warps thread `storer` stores, thread 0 fences and counts; the last block to count takes the other one's word
/// to word 20.
u64 word_of_thread_in_other_block(int storer, const std::string& gather, u64 seed) {
    Bench bench;
    bench.launch.blocks_x = 2;
    bench.launch.threads = 64;
    bench.options.seed = seed;
    bench.run(
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd1, %r2, 8; add.s64 %rd2, %rd0, %rd1;\n"
        "setp.ne.s32 %p1, %r1, " +
        std::to_string(storer) + "; @%p1 bra $STORED; st.global.u32 [%rd2+8], 1;\n$STORED: " + gather +
        "setp.ne.s32 %p2, %r1, 0; @%p2 bra $END; fence.acq_rel.gpu;\n"
        "atom.relaxed.gpu.add.u32 %r3, [%rd0], 1; setp.ne.s32 %p2, %r3, 1; @%p2 bra $END;\n"
        "xor.b32 %r4, %r2, 1; mul.wide.u32 %rd3, %r4, 8; add.s64 %rd4, %rd0, %rd3;\n"
        "ld.global.u32 %r5, [%rd4+8]; st.global.u32 [%rd0+160], %r5;\n$END:");
    return bench.data[20];
}

TEST_CASE("a lane's fence orders its own stores, and those that a barrier of the warp has gathered") {
    for (u64 seed = 1; seed < 20; ++seed) {
        CAPTURE(seed);
        CHECK(word_of_thread_in_other_block(1, "bar.warp.sync -1;\n", seed) == 1);
        CHECK(word_of_thread_in_other_block(1, "", seed) == 0);
    }
}

TEST_CASE("lanes of a block that meet at no barrier neither read nor overwrite each other's bytes") {
    const std::string own = word_of_thread(0) + "st.global.u64 [%rd1], 1;\n";
    const auto other = [](int mask) {
        return "xor.b32 %r61, %r60, " + std::to_string(mask) +
               "; mul.wide.u32 %rd61, %r61, 8; add.s64 %rd62, %rd0, %rd61;\n";
    };
    const std::string load = "ld.global.u32 %r1, [%rd62+4];", store = "st.global.u32 [%rd62], 2;";
    for (u64 seed = 1; seed < 10; ++seed) {
        CAPTURE(seed);
        Bench bench;
        bench.launch.threads = 64;
        bench.options.seed = seed;
        const auto race = [&](const std::string& body, const char* what) {
            CHECK(contains(fault_of(bench, body, FaultKind::kRace), what));
        };
        race(own + other(1) + load, "of global memory is read without a barrier after it was written by warp");
        race(own + other(32) + store, "of global memory is written without a barrier");
        race(own + other(32) + "bar.sync 0;" + store + "ld.global.u32 %r1, [%rd1];", "is read without a barrier");
        bench.run(own + other(1) + "bar.warp.sync -1;" + load + "bar.warp.sync -1;" + store);
        bench.run(own + other(33) + "bar.sync 0;" + load);
    }
}

TEST_CASE("a fence orders what a barrier has gathered, and no other warp's stores") {
    for (u64 seed = 1; seed < 20; ++seed) {
        CAPTURE(seed);
        CHECK(word_of_thread_in_other_block(32, "bar.sync 0;\n", seed) == 1);
        CHECK(word_of_thread_in_other_block(32, "", seed) == 0);
    }
}

TEST_CASE("blocks come in an order of the seed") {
    const auto order = [](u64 seed) {
        Bench bench;
        bench.options.seed = seed;
        bench.launch.blocks_x = 16;
        bench.run(
            "mov.u32 %r1, %tid.x; setp.ne.s32 %p1, %r1, 0; @%p1 ret; mov.u32 %r2, %ctaid.x;"
            "atom.relaxed.gpu.add.u32 %r3, [%rd0], 1; mul.wide.u32 %rd1, %r2, 8; add.s64 %rd2, %rd0, %rd1;"
            "st.global.u32 [%rd2+8], %r3;");
        return bench.data;
    };
    CHECK(order(1) == order(1));
    CHECK(order(1) != order(2));
}

}  // namespace
}  // namespace kvjit::ptx

// Numbers read from assembly, held to counts by hand.
#include "inspect/assembly.h"

#include <doctest/doctest.h>

#include "inspect/hot_loop.h"
#include "inspect/listing.h"

namespace kvjit::tool {
namespace {

constexpr const char* kText = R"(	.text
	.file	"attend_decode"
	.section	.text.memset,"axG",@progbits,memset,comdat
memset:                                 # @memset
.Lfunc_begin0:
	.loc	1 8 0                           # templates/cpu/machine/prologue.h:8:0
.LBB0_2:                                # =>This Inner Loop Header: Depth=1
	movb	%sil, (%rax,%rcx)
	jb	.LBB0_2
	retq
	.section	.stack_sizes,"oG",@progbits,.text.memset,memset,comdat
	.quad	.Lfunc_begin0
	.byte	0
	.text
kvjit_attend_decode:                    # @kvjit_attend_decode
.Lfunc_begin1:
	.loc	2 26 0                          # templates/cpu/attend_decode.cc:26:0
# %bb.0:
	pushq	%rbp
	movq	%rsi, 24(%rsp)                  # 8-byte Spill
	leaq	(%rsi,%rdi), %rax
	prefetcht0	(%rax)
	vmovups	(%rax), %zmm0
	vmulps	.LCPI1_0(%rip), %zmm0, %zmm0
.LBB1_1:                                # =>This Loop Header: Depth=1
                                        #     Child Loop BB1_2 Depth 2
	addq	$64, %rax
.LBB1_2:                                #   Parent Loop BB1_1 Depth=1
                                        # =>  This Inner Loop Header: Depth=2
	.loc	3 40 0                          # templates/cpu/attend/panel.h:40:0
	vmovups	(%rax), %ymm1
	.loc	3 41 0                          # templates/cpu/attend/panel.h:41:0
	vfmadd231ps	(%rsi,%rdi,4), %zmm1, %zmm0
	vfmadd231ps	%zmm2, %zmm1, %zmm3
	vmovups	%zmm3, 64(%rdx)
	addq	%rax, (%rdx)
	cmpq	%rcx, (%rdx)
# %bb.3:                                #   in Loop: Header=BB1_2 Depth=2
	movq	24(%rsp), %rsi                  # 8-byte Reload
	jne	.LBB1_2
.Ltmp3:
# %bb.4:                                #   in Loop: Header=BB1_1 Depth=1
	jne	.LBB1_1
# %bb.5:
	retq
	.section	.stack_sizes,"o",@progbits,.text
	.quad	.Lfunc_begin1
	.ascii	"\270\001"
	.text
	.ident	"a # b"
	.section	.rodata.cst4,"aM",@progbits,4
.LCPI1_0:
	.long	0x3f800000                      # float 1
)";

const AssemblyFunction& function(const std::vector<AssemblyFunction>& all, std::string_view name) {
    for (const AssemblyFunction& each : all) {
        if (each.name == name) return each;
    }
    FAIL("no function ", name);
    return all.front();
}

TEST_CASE("functions have their frames, instructions and spills") {
    const auto all = read_assembly(kText);
    REQUIRE(all.size() == 2);
    CHECK(function(all, "memset").frame_bytes == 0);
    const AssemblyFunction& entry = function(all, "kvjit_attend_decode");
    CHECK(entry.frame_bytes == 184);  // 0x38 + (1 << 7)
    CHECK(entry.counts.instructions == 17);
    CHECK(entry.counts.fmas == 2);
    CHECK(entry.counts.multiplies == 1);
    CHECK(entry.counts.loads == 7);
    CHECK(entry.counts.stores == 3);
    CHECK(entry.counts.spills == 1);
    CHECK(entry.counts.reloads == 1);
    CHECK(entry.counts.vector_bytes == 64);
}

TEST_CASE("blocks belong to the loop that their comment names") {
    const AssemblyFunction entry = function(read_assembly(kText), "kvjit_attend_decode");
    REQUIRE(entry.loops.size() == 2);
    CHECK(entry.loops[0].label == "BB1_1");
    CHECK(!entry.loops[0].is_innermost);
    CHECK(entry.loops[0].counts.instructions == 2);
    const AssemblyLoop& inner = entry.loops[1];
    CHECK(inner.label == "BB1_2");
    CHECK(inner.is_innermost);
    CHECK(inner.depth == 2);
    CHECK(inner.counts.instructions == 8);
    CHECK(inner.counts.fmas == 2);
    CHECK(inner.counts.loads == 5);
    CHECK(inner.counts.stores == 2);
    CHECK(inner.counts.reloads == 1);
    CHECK(inner.line == "cpu/attend/panel.h:41");
}

TEST_CASE("the hot loop is the one of the multiply-adds") {
    HotLoop hot;
    REQUIRE(find_hot_loop(read_assembly(kText), hot));
    CHECK(hot.function == "kvjit_attend_decode");
    CHECK(hot.loop.label == "BB1_2");
    CHECK(!find_hot_loop(read_assembly("f:\n\tretq\n"), hot));
    CHECK(!find_hot_loop({}, hot));
}

TEST_CASE("few multiply-adds among many instructions are not the hot loop; tiles are") {
    const auto loop = [](int instructions, int fmas, int tiles) {
        AssemblyFunction f{.name = "f"};
        f.loops.push_back({.label = std::to_string(instructions), .is_innermost = true, .line = {}});
        f.loops[0].counts = {.instructions = instructions, .fmas = fmas, .tile_products = tiles};
        return f;
    };
    HotLoop hot;
    REQUIRE(find_hot_loop({loop(114, 24, 0), loop(38, 16, 0)}, hot));
    CHECK(hot.loop.label == "38");
    REQUIRE(find_hot_loop({loop(109, 28, 0), loop(40, 4, 4)}, hot));
    CHECK(hot.loop.label == "40");
}

TEST_CASE("names are shown without parameters") {
    CHECK(demangled("_ZN5kvjitL11score_chunkERNS_5PanelENS_8KeyRangeE") == "kvjit::score_chunk");
    CHECK(demangled("kvjit_merge") == "kvjit_merge");
}

TEST_CASE("readable assembly has no directives and no data; a line's text stands where the line begins") {
    const std::string plain = readable_assembly(kText, nullptr);
    for (const char* gone : {".loc", ".section", ".Ltmp", ".long", ".LCPI1_0:", ".ident", "float 1"}) {
        CHECK_MESSAGE(plain.find(gone) == plain.npos, plain);
    }
    for (const char* kept :
         {"kvjit_attend_decode:\n", ".LBB1_2:", "\tvfmadd231ps\t%zmm2, %zmm1, %zmm3\n", "8-byte Spill"}) {
        CHECK_MESSAGE(plain.find(kept) != plain.npos, plain);
    }
    const SourceLines lines = source_lines("#line 40 \"cpu/attend/panel.h\"\n  a = *b;\n  c += a * d;\n");
    const std::string both = readable_assembly(kText, &lines);
    CHECK_MESSAGE(both.find("# cpu/attend/panel.h:41: c += a * d;\n\tvfmadd231ps") != both.npos, both);
    CHECK_MESSAGE(both.find("# cpu/attend_decode.cc:26\n") != both.npos, both);
}

TEST_CASE("any text is read") {
    for (const char* text :
         {"", "\n\n", ":", "\t", "# Loop Header: Depth=", "f:\n\t\n# %bb.", "\t.quad",
          "\t.section .stack_sizes\n\t.ascii \"\\", ".LBB0_1: # =>This Inner Loop Header: Depth=99999999999999"}) {
        HotLoop hot;
        find_hot_loop(read_assembly(text), hot);
        readable_assembly(text, nullptr);
        source_lines(text);
    }
}

}  // namespace
}  // namespace kvjit::tool

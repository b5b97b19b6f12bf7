// An object whose functions two threads have made, against one that a single thread has made.
#include <elf.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cpu/clang/flags.h"
#include "cpu/loaded_objects.h"
#include "generator/program.h"
#include "generator/render.h"
#include "generator/spec.h"
#include "object_view.h"
#include "support.h"

using namespace kvjit;
using test::compile;
using test::ObjectView;

namespace {

constexpr std::string_view kHalves = ",halves";

/// kClangPasses for one thread.
const std::string& whole_passes() {
    static const std::string passes = [] {
        std::string text(rt::kClangPasses);
        REQUIRE(text.find(kHalves) != std::string::npos);
        return text.erase(text.find(kHalves), kHalves.size());
    }();
    return passes;
}

std::string compile_whole(std::string_view source, const gen::Target& target) {
    static const auto compiler = rt::make_compiler(KVJIT_TEST_COMPILER, rt::CompilerSettings{.passes = whole_passes()});
    const auto output = compiler->compile(source, "test.cc", target, rt::CompileStage::kObject);
    REQUIRE_MESSAGE(output.has_value(), output.error().message);
    return output->object;
}

struct Function {
    std::string bytes;
    std::uint64_t misplaced;              // its address beyond a multiple of 16, at which functions begin
    std::set<std::uint64_t> relocations;  // where the loader writes 4 bytes, from the function's first byte on
};

struct Code {
    std::map<std::string, Function> functions;
    int objects = 0;  // that were joined: each has a symbol with its source's name
};

/// Where the section's bytes begin..end-1 have relocations, counted from begin.
std::set<std::uint64_t> relocations_of(const ObjectView& object, std::size_t section, std::uint64_t begin,
                                       std::uint64_t end) {
    std::set<std::uint64_t> offsets;
    for (const Elf64_Shdr& table : object.sections) {
        if (table.sh_type != SHT_RELA || table.sh_info != section) continue;
        for (const Elf64_Rela& relocation : object.entries<Elf64_Rela>(table))
            if (relocation.r_offset >= begin && relocation.r_offset < end) offsets.insert(relocation.r_offset - begin);
    }
    return offsets;
}

Code code_of(std::string bytes) {
    const ObjectView object(bytes);
    Code code;
    for (const Elf64_Sym& symbol : object.symbols()) {
        code.objects += ELF64_ST_TYPE(symbol.st_info) == STT_FILE;
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
        const std::uint64_t begin = symbol.st_value, size = symbol.st_size;
        const Elf64_Shdr& section = object.sections[symbol.st_shndx];
        REQUIRE(begin + size <= section.sh_size);
        Function& function = code.functions[object.name(symbol)];
        function.bytes.assign(object.bytes + section.sh_offset + begin, size);
        function.misplaced = begin % 16;
        function.relocations = relocations_of(object, symbol.st_shndx, begin, begin + size);
    }
    return code;
}

/// Without what the loader writes, in this object or in the other one: calls of functions that lie in one half have
/// their distances already.
std::string instructions_of(Function function, const std::set<std::uint64_t>& others) {
    function.relocations.insert(others.begin(), others.end());
    for (const std::uint64_t offset : function.relocations) function.bytes.replace(offset, 4, 4, '\0');
    return function.bytes;
}

/// Whether two threads made it.
bool check_same_code(const std::string& source, const gen::Target& target) {
    const Code halves = code_of(compile(source, target)), whole = code_of(compile_whole(source, target));
    CHECK(whole.functions.size() > 1);
    CHECK(halves.functions.size() == whole.functions.size());
    for (const auto& [name, function] : whole.functions) {
        CAPTURE(name);
        REQUIRE(halves.functions.contains(name));
        const Function& same = halves.functions.at(name);
        const bool equal = instructions_of(same, function.relocations) == instructions_of(function, same.relocations);
        CHECK(equal);
        CHECK(same.misplaced == function.misplaced);
    }
    CHECK(whole.objects == 1);
    return halves.objects == 2;
}

/// So many functions, part0 and on, of some hundred instructions each, whose results for x f(x) adds up. Part i begins
/// in line 1000 * (i + 1).
std::string many_functions(int functions, const std::string& more = {}, const std::string& linkage = "static") {
    std::string source = more, sum = "0";
    for (int i = 0; i < functions; ++i) {
        const std::string name = "part" + std::to_string(i);
        source += "#line " + std::to_string(1000 * (i + 1)) + " \"cpu/parts.cc\"\n";
        source += linkage + " __attribute__((noinline)) unsigned " + name + "(unsigned x) {\n";
        for (int step = 0; step < 60; ++step)
            source += "    x = (x ^ " + std::to_string(97 * i + step) + "u) * 2654435761u;\n";
        source += "    return x;\n}\n";
        sum += " + " + name + "(x)";
    }
    return source + "extern \"C\" unsigned f(unsigned x) { return " + sum + "; }\n";
}

unsigned expected_sum(int functions, unsigned x) {
    unsigned sum = 0;
    for (int i = 0; i < functions; ++i) {
        unsigned part = x;
        for (int step = 0; step < 60; ++step) part = (part ^ static_cast<unsigned>(97 * i + step)) * 2654435761U;
        sum += part;
    }
    return sum;
}

}  // namespace

TEST_CASE("two threads make of each program the code that one makes") {
    int halved = 0;
    for (const char* text :
         {"op=MultiHeadCacheAttention,head_dim=128,group=4,cache_mode=page_table,layout=L2HTD",
          "op=MultiHeadCacheAttention,head_dim=64,group=8,quant_bit=8,quant_group=32,attn_mask=2",
          "op=MultiHeadCacheAttention,head_dim=80,group=1,t1=bf16,quant_bit=4,quant_group=16,t3=f16,is_alibi=1"}) {
        const auto spec = gen::parse_spec(text);
        REQUIRE(spec.has_value());
        for (const char* level : {"x86-64", "x86-64-v4-amx"}) {
            CAPTURE(std::string(text) + " on " + level);
            const gen::Target target = test::level(level);
            const auto programs = gen::lower(*spec, target);
            REQUIRE(programs.has_value());
            for (const gen::Program& program : *programs) {
                CAPTURE(std::string(program.info->name));
                const auto source = gen::render(program, target, gen::embedded_templates());
                REQUIRE(source.has_value());
                halved += check_same_code(*source, target);
            }
        }
    }
    CHECK(halved >= 3 * 2 * 2);  // decode and prefill at least
}

TEST_CASE("functions of both halves call each other and share constants") {
    const std::string table =
        "static const unsigned table[4] = {3, 1, 4, 1};\n"
        "extern \"C\" unsigned f(unsigned);\n"
        "__attribute__((noinline)) static unsigned look_up(const unsigned* from, unsigned i) {\n"
        "    unsigned copy[64]; __builtin_memset(copy, 0, sizeof(copy));\n"
        "    for (unsigned k = 0; k < 4; ++k) copy[(k + i) % 64] = from[k];\n"
        "    return copy[i % 64];\n}\n"
        "extern \"C\" __attribute__((weak)) void* memset(void* to, int byte, unsigned long size) {\n"
        "    for (unsigned long i = 0; i < size; ++i) ((volatile char*)to)[i] = (char)byte;\n"
        "    return to;\n}\n"
        "extern \"C\" unsigned g(unsigned x) { return f(x) + look_up(table, x); }\n";
    const std::string source = many_functions(8, table);
    CHECK(check_same_code(source, rt::host_target()));
    const auto image = test::load(source, "f");
    const auto other = test::load(source, "g");
    for (const unsigned x : {0U, 7U, 123456U}) {
        CHECK(test::as<unsigned(unsigned)>(image)(x) == expected_sum(8, x));
        CHECK(test::as<unsigned(unsigned)>(other)(x) == expected_sum(8, x) + 3);
    }
}

TEST_CASE("a constant has one address") {
    const std::string tag =
        "static const char tag = 1;\n"
        "extern \"C\" unsigned f(unsigned);\n";
    std::string source = many_functions(8, tag);
    for (const char* name : {"a", "b", "c", "d"})
        source += "__attribute__((noinline)) static const char* " + std::string(name) +
                  "() { asm volatile(\"\"); return &tag; }\n";
    source += "extern \"C\" int g() { return a() == b() && b() == c() && c() == d(); }\n";
    CHECK(check_same_code(source, rt::host_target()));
    CHECK(test::as<int()>(test::load(source, "g"))() == 1);
}

TEST_CASE("too little to share is made by one thread, and so is what has a variable, which stays one") {
    CHECK_FALSE(check_same_code(many_functions(2), rt::host_target()));
    const std::string counter =
        "static unsigned count;\n"
        "__attribute__((noinline)) static void add(unsigned n) { count += n; }\n"
        "extern \"C\" unsigned f(unsigned);\n"
        "extern \"C\" unsigned g(unsigned x) { add(x); add(f(x)); return count; }\n";
    const std::string source = many_functions(8, counter);
    CHECK_FALSE(check_same_code(source, rt::host_target()));
    const auto image = test::load(source, "g");
    CHECK(test::as<unsigned(unsigned)>(image)(5) == 5 + expected_sum(8, 5));
}

TEST_CASE("a function that neither half has is missing, and a warning of either half is in the log") {
    const auto missing =
        test::compiler().compile(many_functions(8,
                                                "extern \"C\" unsigned nowhere(unsigned);\n"
                                                "extern \"C\" unsigned g(unsigned x) { return nowhere(x); }\n"),
                                 "test.cc", rt::host_target(), rt::CompileStage::kObject);
    REQUIRE_FALSE(missing.has_value());
    CHECK(missing.error().message.find("undefined symbol: nowhere") != std::string::npos);
    std::string loops;
    for (const char* name : {"g", "h", "i", "j"})
        loops += "extern \"C\" void " + std::string(name) +
                 "(float* p, int n) {\n"
                 "#pragma clang loop unroll(full)\n"
                 "    for (int i = 0; i < n; ++i) p[i] = 1;\n}\n";
    const auto warned =
        test::compiler().compile(many_functions(8, loops), "test.cc", rt::host_target(), rt::CompileStage::kObject);
    REQUIRE(warned.has_value());
    std::size_t warnings = 0;
    for (std::size_t at = 0; (at = warned->log.find("loop not unrolled", at)) != std::string::npos; ++at) ++warnings;
    CHECK(warnings == 4);
    CHECK(code_of(warned->object).objects == 2);
}

TEST_CASE("each function of both halves has its lines") {
    const std::string source = many_functions(8, "", "extern \"C\"");
    CHECK(check_same_code(source, rt::host_target()));
    for (int i = 0; i < 8; ++i) {
        const auto image = test::load(source, "part" + std::to_string(i));
        const auto address = reinterpret_cast<std::uint64_t>(image->entry());
        CHECK(test::compiler().code_line(address) == "cpu/parts.cc:" + std::to_string(1000 * (i + 1) + 1));
    }
}

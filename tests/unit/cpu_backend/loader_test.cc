// Linking objects into memory, and refusing what is none.
#include <elf.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "cpu/loaded_objects.h"
#include "object_view.h"
#include "support.h"

using namespace kvjit;
using test::as;
using test::compile;
using test::compiler;
using test::load;
using test::ObjectView;

// gdb's JIT interface, seen from outside (gdb's manual, "JIT Interface").
extern "C" {
struct GdbEntry {
    GdbEntry* next;
    GdbEntry* previous;
    const char* symfile;
    std::uint64_t bytes;
};
struct GdbDescriptor {
    std::uint32_t version;
    std::uint32_t action;
    GdbEntry* relevant;
    GdbEntry* first;
};
extern GdbDescriptor __jit_debug_descriptor;
}

namespace {

constexpr std::string_view kCaller = R"(
__attribute__((noinline)) static int helper(int x) { asm volatile(""); return x + 1; }
extern "C" int caller(int x) { return helper(x) * 2; }
)";

std::vector<std::string> mappings(std::string_view wanted) {
    std::vector<std::string> lines;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find(wanted) != std::string::npos) lines.push_back(line);
    }
    return lines;
}

std::string refusal(const std::string& object, const std::string& entry = "caller") {
    const auto image = rt::load_object(object, entry, "test");
    REQUIRE_FALSE(image.has_value());
    CHECK(image.error().status == KVJIT_BAD_FILE);
    return image.error().message;
}

}  // namespace

TEST_CASE("a loaded function runs") {
    CHECK(as<int(int)>(load(kCaller, "caller"))(20) == 42);
}

TEST_CASE("constants, tables of pointers, jump tables and writable data are linked") {
    const rt::ImagePtr image = load(R"(
        static int calls = 0;
        static int plus(int x) { return x + 1; }
        static int minus(int x) { return x - 1; }
        static int (*const table[])(int) = {plus, minus};
        static int (*volatile chosen)(int) = minus;
        extern "C" double mixed(int which, int x) {
            ++calls;
            switch (which) {
                case 0: return table[x & 1](x) + 0.25;
                case 1: return chosen(x) + 0.5;
                case 2: return calls;
                case 3: return x * 3.75;
                case 4: return x / 7.0;
                default: return -1;
            }
        })",
                                    "mixed");
    auto* mixed = as<double(int, int)>(image);
    CHECK(mixed(0, 2) == 3.25);
    CHECK(mixed(0, 3) == 2.25);
    CHECK(mixed(1, 9) == 8.5);
    CHECK(mixed(2, 0) == 4);
    CHECK(mixed(3, 2) == 7.5);
    CHECK(mixed(9, 0) == -1);
}

TEST_CASE("the sample kernel computes attention on this machine") {
    constexpr int kTokens = 100, kHeadDim = 128, kGroup = 4;
    std::vector<float> query(kGroup * kHeadDim), scale(2 * kTokens), output(kGroup * kHeadDim);
    std::vector<signed char> key(kTokens * kHeadDim), value(kTokens * kHeadDim);
    for (std::size_t i = 0; i < query.size(); ++i) query[i] = float(i % 13) / 13 - 0.5F;
    for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = 0.01F * float(1 + i % 5);
    for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<signed char>(i * 7 % 255 - 127);
    for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<signed char>(i * 11 % 251 - 125);
    struct {
        const void *query, *key, *value, *scale;
        void* output;
        long tokens;
    } arguments{query.data(), key.data(), value.data(), scale.data(), output.data(), kTokens};
    const rt::ImagePtr image = load(test::sample_source(rt::host_target().vector_bytes()), "sample_kernel");
    as<void(void*)>(image)(&arguments);

    for (int g = 0; g < kGroup; ++g) {
        std::vector<double> sum(kHeadDim);
        double total = 0;
        for (int t = 0; t < kTokens; ++t) {
            double score = 0;
            for (int d = 0; d < kHeadDim; ++d) score += double(query[g * kHeadDim + d]) * key[t * kHeadDim + d];
            const double weight = std::exp2(score * scale[2 * t]);
            total += weight;
            for (int d = 0; d < kHeadDim; ++d) sum[d] += weight * value[t * kHeadDim + d] * scale[2 * t + 1];
        }
        for (int d = 0; d < kHeadDim; ++d) {
            CHECK(output[g * kHeadDim + d] == doctest::Approx(sum[d] / total).epsilon(1e-4));
        }
    }
}

TEST_CASE("memory is never writable and executable at once, and goes with the image") {
    const std::size_t before = mappings(" r-xp 00000000 00:00 0").size();
    {
        const rt::ImagePtr first = load(kCaller, "caller");
        const rt::ImagePtr second = load(kCaller, "caller");
        CHECK(first->entry() != second->entry());
        CHECK(mappings(" r-xp 00000000 00:00 0").size() > before);
        CHECK(mappings("rwx").empty());
    }
    CHECK(mappings(" r-xp 00000000 00:00 0").size() == before);
}

TEST_CASE("gdb is told where the code lies, and told again when it goes") {
    const auto count = [] {
        std::size_t entries = 0;
        for (const GdbEntry* e = __jit_debug_descriptor.first; e; e = e->next) ++entries;
        return entries;
    };
    const std::size_t before = count();
    {
        const rt::ImagePtr image = load(kCaller, "caller");
        CHECK(count() == before + 1);
        const GdbEntry& entry = *__jit_debug_descriptor.first;
        std::string symfile(entry.symfile, entry.bytes);
        const Elf64_Shdr* text = ObjectView(symfile).section(".text");
        const auto address = reinterpret_cast<std::uintptr_t>(image->entry());
        CHECK(address - text->sh_addr < text->sh_size);
    }
    CHECK(count() == before);
}

TEST_CASE("loaded code is told by the line that it was compiled from, and by none once it is gone") {
    rt::ImagePtr image = load("#line 40 \"cpu/store.cc\"\nextern \"C\" int f() { return 1; }\n", "f");
    const auto address = reinterpret_cast<std::uintptr_t>(image->entry());
    CHECK(compiler().code_line(address) == "cpu/store.cc:40");
    image.reset();
    CHECK(compiler().code_line(address) == "an unknown line");
}

TEST_CASE("gdb keeps what is still loaded, whatever goes before it") {
    const auto has = [](const rt::ImagePtr& image) {
        const auto address = reinterpret_cast<std::uintptr_t>(image->entry());
        return !rt::find_loaded_object(address).empty();
    };
    std::vector<rt::ImagePtr> images;
    for (int i = 0; i < 3; ++i) images.push_back(load(kCaller, "caller"));
    const auto gone = reinterpret_cast<std::uintptr_t>(images[1]->entry());
    images.erase(images.begin() + 1);
    CHECK(rt::find_loaded_object(gone).empty());
    for (const rt::ImagePtr& image : images) CHECK(has(image));
    std::size_t forth = 0, back = 0;
    const GdbEntry* last = nullptr;
    for (const GdbEntry* e = __jit_debug_descriptor.first; e; last = e, e = e->next) ++forth;
    for (; last; last = last->previous) ++back;
    CHECK(forth == back);
}

TEST_CASE("objects are loaded and unloaded by many threads at once, and each fails for its own reason") {
    const std::string object = compile(kCaller, rt::host_target());
    std::atomic<int> wrong = 0;
    const auto work = [&](int thread) {
        const std::string missing = "missing" + std::to_string(thread);
        for (int i = 0; i < 50; ++i) {
            const auto image = rt::load_object(object, "caller", "test");
            if (!image || as<int(int)>(*image)(thread) != 2 * (thread + 1)) ++wrong;
            const auto failed = rt::load_object(object, missing, "test");
            if (failed || failed.error().message.find(missing) == std::string::npos) ++wrong;
        }
    };
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("an entry that isn't there is an error") {
    CHECK(refusal(compile(kCaller, rt::host_target()), "other").find("other") != std::string::npos);
}

TEST_CASE("an undefined symbol is an error, not a look into the process") {
    std::string object = compile(
        "__attribute__((noinline)) int puts(const char*) { asm volatile(\"\"); return 1; }\n"
        "extern \"C\" int caller(int) { return puts(\"\"); }\n",
        rt::host_target());
    Elf64_Sym* symbol = ObjectView(object).symbol("_Z4putsPKc");
    symbol->st_shndx = SHN_UNDEF;
    symbol->st_other = STV_DEFAULT;
    CHECK(refusal(object).find("undefined symbol _Z4putsPKc") != std::string::npos);
}

TEST_CASE("an object for another machine is an error") {
    std::string object = compile(kCaller, rt::host_target());
    ObjectView(object).header->e_machine = EM_AARCH64;
    refusal(object);
}

TEST_CASE("bytes that are no object are an error") {
    refusal("");
    refusal("hello");
    refusal(std::string(4096, '\0'));
    refusal(test::read_file("/proc/self/exe"));
}

TEST_CASE("an object cut short anywhere is an error") {
    const std::string object = compile(kCaller, rt::host_target());
    for (std::size_t bytes = 0; bytes < object.size(); ++bytes) {
        CAPTURE(bytes);
        CHECK_FALSE(rt::load_object(std::string_view(object).substr(0, bytes), "caller", "test").has_value());
    }
}

TEST_CASE("a relocation outside of its section is an error") {
    std::string object = compile("static int calls; extern \"C\" int* caller() { return &calls; }", rt::host_target());
    const Elf64_Shdr* section = ObjectView(object).section(".rela.text");
    auto* relocation = reinterpret_cast<Elf64_Rela*>(object.data() + section->sh_offset);
    relocation->r_offset = ObjectView(object).section(".text")->sh_size - 3;
    CHECK(refusal(object).find("outside of its section") != std::string::npos);
    relocation->r_offset = 1U << 30;
    refusal(object);
}

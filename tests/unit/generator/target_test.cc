// Targets by name, and what belongs to each backend.
#include <doctest/doctest.h>

#include <ostream>

#include "generator/architecture.h"
#include "generator/render.h"
#include "lowered.h"

using namespace kvjit::gen;

namespace {

TemplateReader named_files() {
    return [](std::string_view path) -> Result<std::string> {
        if (path == "cuda/merge.cu" || path == "cpu/merge.cc") return "#include \"cuda/machine/contract.h\"\n";
        return "file " + std::string(path) + "\n";
    };
}

std::string name_of(const std::optional<Architecture>& architecture) {
    return architecture ? architecture->name() : "";
}

}  // namespace

TEST_CASE("CUDA architectures that there are from sm_80 on are targets; nothing else that looks like one is") {
    for (const char* name : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_100f", "sm_103a", "sm_120"}) {
        CAPTURE(name);
        const Result<Target> target = named_target(name);
        REQUIRE(target.has_value());
        CHECK(target->backend == Backend::kCuda);
        CHECK(target->name() == name);
        CHECK(target->text() == "nvptx64-nvidia-cuda:" + std::string(name));
    }
    for (const char* name : {"sm_75", "sm_", "sm_a", "sm_90b", "sm_9x", "sm_90aa", "sm_-90", "sm_999", "sm_95a",
                             "sm_81", "SM_90", "compute_90", "sm_090", "sm_80a", "sm_89a", "sm_86f", "sm_90f"}) {
        CAPTURE(name);
        const Result<Target> target = named_target(name);
        REQUIRE(!target.has_value());
        CHECK(target.error().status == KVJIT_BAD_TARGET);
        CHECK(target.error().message.contains(name));
    }
    CHECK(named_target("sm_75").error().limit == 80);
    CHECK(named_target("sm_80a").error().limit == 90);
    CHECK(named_target("sm_80a").error().message.contains("an a there is from sm_90a on"));
    CHECK(named_target("sm_90f").error().limit == 100);
}

TEST_CASE("what no CUDA knows is refused with what there is, unless the caller knows more") {
    const Error error = named_target("sm_999").error();
    CHECK(error.value == 999);
    CHECK(error.message.contains(" sm_80 sm_86 sm_87 sm_88 sm_89 sm_90 sm_100 sm_101 sm_103 sm_110 sm_120 sm_121,"));
    const int further[] = {70, 130};
    CHECK(named_target("sm_130a", further)->name() == "sm_130a");
    CHECK(!named_target("sm_131", further).has_value());
    CHECK(named_target("sm_70", further).error().limit == 80);
}

TEST_CASE("a CPU that has FMA may emulate AMX, by name") {
    for (const char* name : {"x86-64-v3+amx-emulated", "x86-64-v4-bf16+sse4a+amx-emulated",
                             "x86-64-v4-amx+amx-emulated", "x86-64-v2+avx+avx2+f16c+fma+amx-emulated"}) {
        CAPTURE(name);
        const Result<Target> target = named_target(name);
        REQUIRE(target.has_value());
        CHECK(target->emulates_amx);
        CHECK(target->name() == name);
        CHECK(*parse_target(target->text()) == *target);
        CHECK(target->multiplies_tiles("amx-bf16"));
        CHECK(target->multiplies_tiles("amx-int8"));
        const TargetList lesser = with_lesser(*target);
        CHECK(lesser.front() == *target);
        for (std::size_t i = 1; i < lesser.size(); ++i) CHECK(!lesser[i].emulates_amx);
    }
    for (const char* name :
         {"x86-64-v2+amx-emulated", "x86-64-v2+avx+avx2+amx-emulated", "amx-emulated", "x86-64-v3+amx-emulated+gfni",
          "x86-64-v3+amx-emulated+amx-emulated", "sm_90+amx-emulated"}) {
        CAPTURE(name);
        CHECK(!named_target(name).has_value());
    }
    CHECK(!parse_target("cuda-emulated:x86_64-unknown-linux-gnu:x86-64-v3+amx-emulated").has_value());
}

TEST_CASE("Hopper's code alone multiplies by warpgroups, and the emulation of it") {
    for (const char* name : {"sm_80", "sm_90", "sm_100a", "sm_120", "x86-64-v4"}) {
        CAPTURE(name);
        CHECK(!named_target(name)->multiplies_by_warpgroups());
    }
    CHECK(named_target("sm_90a")->multiplies_by_warpgroups());
    Target emulated = emulated_target(*named_target("x86-64-v3"));
    CHECK(!emulated.multiplies_by_warpgroups());
    const std::string plain = emulated.text();
    emulated.wgmma = true;
    CHECK(emulated.multiplies_by_warpgroups());
    CHECK(emulated.name() == "x86-64-v3+wgmma");
    CHECK(emulated.text() == plain);  // programs that don't use them are the same
    CHECK(emulated.full_text() == plain + "+wgmma");
    CHECK(*parse_target(emulated.full_text()) == emulated);
    CHECK(!parse_target(plain)->wgmma);
    for (const std::string text :
         {"nvptx64-nvidia-cuda:sm_90a+wgmma", "x86_64-unknown-linux-gnu:x86-64-v3+wgmma", "cuda-emulated:+wgmma"}) {
        CAPTURE(text);
        CHECK(!parse_target(text).has_value());
    }
    std::string endings = plain;
    for (int i = 0; i < 400'000; ++i) endings += "+wgmma";
    for (const std::string& text : {plain + "+wgmma+wgmma", endings}) CHECK(!parse_target(text).has_value());
    for (const char* name : {"sm_90a+wgmma", "sm_90a+", "sm_90a+amx", "x86-64-v4+wgmma", "+wgmma"}) {
        CAPTURE(name);
        CHECK(!named_target(name).has_value());
    }
}

TEST_CASE("a CPU with AMX stands for itself without it, too, before lesser levels") {
    const auto names = [](std::string_view name) {
        std::vector<std::string> all;
        for (const Target& target : with_lesser(*named_target(name))) all.push_back(target.name());
        return all;
    };
    const std::vector<std::string> lesser = {"x86-64-v4-fp16", "x86-64-v4-bf16", "x86-64-v4-vnni", "x86-64-v4",
                                             "x86-64-v3",      "x86-64-v2",      "x86-64"};
    std::vector<std::string> expected = lesser;
    CHECK(names("x86-64-v4-fp16") == expected);
    expected.insert(expected.begin(), "x86-64-v4-amx");
    CHECK(names("x86-64-v4-amx") == expected);
    expected.insert(expected.begin(), {"x86-64-v4-amx+amx-fp16+gfni", "x86-64-v4-fp16+gfni"});
    CHECK(names("x86-64-v4-amx+amx-fp16+gfni") == expected);
}

TEST_CASE("the list ascends, and each generation's first number is in it") {
    int last = 0;
    for (const KnownArchitecture& known : known_architectures()) {
        CHECK(known.number > last);
        CHECK(known.cuda >= 11000);
        last = known.number;
        CHECK(find_architecture(known.number) == &known);
        CHECK(find_architecture(known.number / 10 * 10) != nullptr);
    }
    CHECK(find_architecture(999) == nullptr);
}

TEST_CASE("the nearest architecture is the highest one of the generation whose code runs, plain, Tegra apart") {
    constexpr int kOf128[] = {75, 80, 86, 87, 89, 90, 100, 101, 120};
    const auto nearest = [&](std::string_view name) {
        return name_of(nearest_architecture(architecture_of(name), {kOf128, false}));
    };
    for (const char* name : {"sm_80", "sm_87", "sm_90a", "sm_100", "sm_100a", "sm_101", "sm_120a"}) {
        CHECK(nearest(name) == name);
    }
    CHECK(nearest("sm_103") == "sm_100");
    CHECK(nearest("sm_103a") == "sm_100");
    CHECK(nearest("sm_121f") == "sm_120");
    CHECK(nearest("sm_100f") == "sm_100");
    CHECK(nearest("sm_88") == "sm_86");
    CHECK(nearest("sm_105") == "sm_100");  // one that isn't in the list
    CHECK(nearest("sm_110").empty());
    constexpr int kNewer[] = {88, 100, 103};
    const auto newer = [&](std::string_view name) {
        return name_of(nearest_architecture(architecture_of(name), {kNewer, true}));
    };
    CHECK(newer("sm_100f") == "sm_100f");
    CHECK(newer("sm_101a").empty());
    CHECK(newer("sm_87").empty());
}

TEST_CASE("where NVRTC doesn't know an architecture, a newer NVRTC helps, or the architecture's new name") {
    const auto help = [](std::string_view name, int version) {
        return unknown_architecture_help(architecture_of(name), version);
    };
    CHECK(help("sm_101", 12060) == "a newer GPU needs a newer NVRTC");
    CHECK(help("sm_101", 13000) == "from CUDA 13.0 on sm_101 is named sm_110");
    CHECK(help("sm_101a", 13010) == "from CUDA 13.0 on sm_101a is named sm_110a");
    CHECK(help("sm_130", 13000) == "a newer GPU needs a newer NVRTC");
}

TEST_CASE("code runs on its own generation from its own number on; accelerated code on one number alone") {
    const auto runs_on = [](std::string_view code, int number) { return runs_code(number, architecture_of(code)); };
    CHECK(runs_on("sm_80", 80));
    CHECK(runs_on("sm_80", 89));
    CHECK(!runs_on("sm_80", 90));
    CHECK(!runs_on("sm_89", 86));
    CHECK(runs_on("sm_90a", 90));
    CHECK(!runs_on("sm_100a", 103));
    CHECK(runs_on("sm_100f", 103));
    CHECK(runs_on("sm_120", 120));
    CHECK(runs_on("sm_120", 121));
    CHECK(runs_on("sm_87", 87));
    CHECK(!runs_on("sm_87", 89));
    CHECK(!runs_on("sm_86", 87));
}

TEST_CASE("a block's shared memory is the architecture's") {
    CHECK(max_shared_bytes(*named_target("sm_80")) == 163 * 1024);
    CHECK(max_shared_bytes(*named_target("sm_89")) == 99 * 1024);
    CHECK(max_shared_bytes(*named_target("sm_90a")) == 227 * 1024);
    CHECK(max_shared_bytes(*named_target("sm_100a")) == 227 * 1024);
    CHECK(max_shared_bytes(*named_target("sm_120")) == 99 * 1024);
    CHECK(max_shared_bytes(emulated_target(*named_target("x86-64-v3"))) == 99 * 1024);
}

TEST_CASE("an emulated target is its machine's, and another identity") {
    const Target machine = *named_target("x86-64-v3");
    const Target emulated = emulated_target(machine);
    CHECK(emulated.backend == Backend::kCudaEmulated);
    CHECK(emulated.features == machine.features);
    CHECK(emulated.text() == "cuda-emulated:" + machine.text());
    CHECK(emulated != machine);
}

TEST_CASE("each backend has its own primitives") {
    const Target cpu = *named_target("x86-64"), cuda = *named_target("sm_80");
    const auto merged = [](const Target& target) {
        return render(lowered("op=Merge", target).front(), target, named_files());
    };
    CHECK(merged(cuda)->contains("file cuda/machine/ptx.h"));
    CHECK(merged(emulated_target(cpu))->contains("file cuda/machine/emulated.h"));
}

TEST_CASE("every program of every op renders for CUDA") {
    for (const Target& target : {*named_target("sm_90a"), emulated_target(*named_target("x86-64"))}) {
        for (const char* text : {"op=KeyValueCache,quant_bit=4", "op=MultiHeadCacheAttention", "op=Merge"}) {
            for (const Program& program : lowered(text, target)) {
                const Result<std::string> source = render(program, target, embedded_templates());
                REQUIRE_MESSAGE(source.has_value(), source.error().message);
                CHECK(!source->contains("\n#include"));
                CHECK(source->contains(program.info->entry()));
                CHECK(source->contains("constexpr int kMaxSharedBytes = "));
                CHECK(!source->contains("kHasAvx512 = "));
            }
        }
    }
}

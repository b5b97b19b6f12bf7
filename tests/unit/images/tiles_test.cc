// The permission to use AMX: when it is asked for, and what serves where it is refused.
#include <algorithm>
#include <cerrno>
#include <thread>

#include "fakes.h"
#include "prepare.h"

using namespace kvjit;
using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

using State = TilePermission::State;

const std::string kSpec = "head_dim=64,group=4";
constexpr std::uint32_t kStep = KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_DECODE;

gen::Target named(const std::string& name) {
    return *gen::named_target(name);
}

/// Of a machine with AMX: its own target, that without AMX, levels with AMX and without.
const gen::TargetList& amx_host() {
    static const gen::TargetList targets = gen::with_lesser(named("x86-64-v4-amx+gfni"));
    return targets;
}
const gen::Target& with_amx() {
    return amx_host()[0];
}
const gen::Target& without_amx() {
    return amx_host()[1];
}

/// An engine of the world, a bundle that it has, and kernels of it.
struct Setting {
    explicit Setting(World& world, bool jit = true, bool amx = true) {
        ImagesOptions options = options_over(world, jit);
        if (!amx) options.tiles = nullptr;
        images = std::make_shared<Images>(std::move(options));
        images->add_bundle(bundle);
    }
    KernelPtr kernel(const std::string& spec = kSpec, const gen::TargetList& targets = amx_host()) const {
        return *Kernel::make(images, spec_of(spec), targets);
    }

    std::shared_ptr<FakeBundle> bundle = std::make_shared<FakeBundle>();
    std::shared_ptr<Images> images;
};

/// The target of a program's image, loaded or not.
gen::Target target_of(const KernelPtr& kernel, kvjit_programs program) {
    const auto images = kernel->images(program);
    REQUIRE_MESSAGE(images.has_value(), images.error().message);
    return *images->front().target;
}

void check_all_for(const World& world, const gen::Target& target, std::size_t count) {
    CHECK(world.entries.size() == count);
    for (const auto& [identity, entry] : world.entries) CHECK(is_for(identity, target));
}

}  // namespace

TEST_CASE("nobody asks for AMX who only looks, nor for programs that use none of it") {
    World world;
    const Setting at(world);
    const KernelPtr kernel = at.kernel();
    CHECK(kernel->images(KVJIT_ALL_PROGRAMS)->size() == 4);
    CHECK(kernel->emit(KVJIT_ALL_PROGRAMS, KVJIT_STAGE_SOURCE)->contains("amx"));
    CHECK(explain_kernel(*at.images, spec_of(kSpec), amx_host(), KVJIT_ALL_PROGRAMS)->text.contains("amx.cc) serves"));
    REQUIRE(kernel->prepare(kStep | KVJIT_PROGRAM_MERGE).has_value());
    for (const char* other : {"head_dim=64,group=4,t1=f32", "op=KeyValueCache,head_dim=64", "op=Merge,head_dim=64"}) {
        REQUIRE(at.kernel(other)->prepare(KVJIT_ALL_PROGRAMS).has_value());
    }
    REQUIRE(at.kernel(kSpec, {named("x86-64-v4-amx+amx-emulated")})->prepare(KVJIT_ALL_PROGRAMS).has_value());
    REQUIRE(at.kernel(kSpec, {emulated_target(with_amx())})->prepare(KVJIT_ALL_PROGRAMS).has_value());
    CHECK(target_of(kernel, KVJIT_PROGRAM_DECODE) == with_amx());
    CHECK(world.amx_requests == 0);
}

TEST_CASE("with the permission AMX is used, and was asked for once") {
    World world;
    const Setting at(world);
    REQUIRE(at.kernel()->prepare(KVJIT_ALL_PROGRAMS).has_value());
    check_all_for(world, with_amx(), 4);
    REQUIRE(at.kernel("head_dim=128,group=4")->prepare(KVJIT_ALL_PROGRAMS).has_value());
    REQUIRE(Setting(world).kernel()->prepare(KVJIT_ALL_PROGRAMS).has_value());
    CHECK(world.amx_requests == 1);
    CHECK(world.warnings.empty());
}

TEST_CASE("threads that need AMX at once ask for it once") {
    World world;
    const Setting at(world);
    std::vector<std::jthread> threads;
    for (int i = 1; i <= 8; ++i) {
        const KernelPtr kernel = at.kernel("head_dim=" + std::to_string(8 * i) + ",group=4");
        threads.emplace_back([kernel] { CHECK(kernel->prepare(KVJIT_ALL_PROGRAMS).has_value()); });
    }
    threads.clear();
    CHECK(world.amx_requests == 1);
    CHECK(world.tiles.state() == State::kGranted);
}

TEST_CASE("refused AMX means the same machine without it for all of a kernel's programs, and a line in each log") {
    World world;
    world.amx_error = ENOSPC;
    const Setting at(world);
    for (const char* spec : {"head_dim=64,group=4", "head_dim=128,group=4"}) {
        REQUIRE(at.kernel(spec)->prepare(KVJIT_ALL_PROGRAMS).has_value());
    }
    check_all_for(world, without_amx(), 8);
    REQUIRE(world.warnings.size() == 1);
    CHECK(world.warnings[0].starts_with("AMX is not used: the system refuses AMX while a thread has a signal stack"));
    REQUIRE(Setting(world).kernel()->prepare(KVJIT_PROGRAM_PREFILL).has_value());
    CHECK(world.warnings.size() == 2);
    CHECK(world.amx_requests == 1);
}

TEST_CASE("after a refusal what is shown and traced is what runs") {
    World world;
    world.amx_error = EPERM;
    const Setting at(world);
    const KernelPtr kernel = at.kernel(), other = at.kernel("head_dim=128,group=4");
    CHECK(target_of(other, KVJIT_PROGRAM_PREFILL) == with_amx());
    REQUIRE(kernel->prepare(KVJIT_PROGRAM_PREFILL).has_value());
    CHECK(kernel->target() == without_amx());
    for (const KernelPtr& shown : {kernel, other}) {
        CHECK(target_of(shown, KVJIT_PROGRAM_PREFILL) == without_amx());
        CHECK(target_of(shown, KVJIT_PROGRAM_DECODE) == without_amx());
    }
    const auto explained = explain_kernel(*at.images, spec_of(kSpec), amx_host(), KVJIT_PROGRAM_PREFILL);
    CHECK(explained->text.contains("amx.cc) declines: target is x86-64-v4-fp16+gfni, which lacks amx-bf16"));
}

TEST_CASE("a plan asks for AMX where that decides on decode or prefill for one of its sequences, and not else") {
    for (const int error : {0, ENOSPC}) {
        World world;
        world.amx_error = error;
        const Setting at(world);
        const KernelPtr kernel = at.kernel();  // of float16: decode doesn't use AMX, prefill does
        const auto counts_on = [](const gen::Target& target) {
            return gen::cpu_decode_tokens(spec_of(kSpec), target, *gen::lower(spec_of(kSpec), target));
        };
        const gen::TokenCounts with = counts_on(with_amx()), without = counts_on(without_amx());
        gen::TokenCounts alike, unlike, all;
        for (int tokens = 1; tokens <= gen::TokenCounts::kMost; ++tokens) {
            (with.contains(tokens) == without.contains(tokens) ? alike : unlike).add(tokens);
            all.add(tokens);
        }
        REQUIRE(alike.contains(1));
        REQUIRE(unlike.most() > 0);
        CHECK_FALSE(kernel->decode_tokens(alike).differ(with, alike));
        CHECK(world.amx_requests == 0);
        CHECK_FALSE(kernel->decode_tokens(unlike).differ(error == 0 ? with : without, all));
        CHECK(world.amx_requests == 1);
        CHECK(world.compiles == 0);
    }
}

TEST_CASE("where a store has programs without AMX alone, the split is theirs, whatever is asked and answered later") {
    World world;
    world.amx_error = ENOSPC;
    const Setting at(world, false);
    const gen::Target lesser = named("x86-64-v4");
    for (const kvjit_programs program : {KVJIT_PROGRAM_DECODE, KVJIT_PROGRAM_PREFILL})
        put(*at.bundle, kSpec, program, lesser);
    const KernelPtr kernel = at.kernel();
    gen::TokenCounts all;
    for (int tokens = 1; tokens <= gen::TokenCounts::kMost; ++tokens) all.add(tokens);
    const gen::TokenCounts before = kernel->decode_tokens(all);
    REQUIRE(kernel->prepare(KVJIT_PROGRAM_DECODE).has_value());
    const auto asked = at.bundle->asked;
    CHECK_FALSE(kernel->decode_tokens(all).differ(before, all));
    CHECK(at.bundle->asked == asked);
    CHECK(world.amx_requests == 0);
    CHECK_FALSE(world.tiles.ask().has_value());  // another kernel
    CHECK_FALSE(kernel->decode_tokens(all).differ(before, all));
}

TEST_CASE("where no bundle has a program for a machine without AMX the error says that AMX is refused") {
    World world;
    world.amx_error = ENOSPC;
    const Setting at(world, false);
    put(*at.bundle, kSpec, KVJIT_PROGRAM_PREFILL, named("x86-64-v4-amx"));
    const gen::Error error = at.kernel()->prepare(KVJIT_PROGRAM_PREFILL).error();
    CHECK(error.status == KVJIT_NOT_FOUND);
    CHECK(
        error.message.contains("; AMX is refused to this process or forbidden, so programs for x86-64-v4-amx don't "
                               "serve; to have it in a bundle for x86-64-v4-fp16, add this line"));
}

TEST_CASE("programs from before a refusal stay, and their bits with them") {
    World world;
    world.amx_error = ENOSPC;
    const Setting at(world);
    const KernelPtr kernel = at.kernel();
    const auto before = kernel->prepare(kStep);
    REQUIRE(before.has_value());
    const auto after = kernel->prepare(KVJIT_ALL_PROGRAMS);
    REQUIRE(after.has_value());
    CHECK((*after)[KVJIT_PROGRAM_DECODE] == (*before)[KVJIT_PROGRAM_DECODE]);
    CHECK(target_of(kernel, KVJIT_PROGRAM_DECODE) == with_amx());
    CHECK(target_of(kernel, KVJIT_PROGRAM_PREFILL) == without_amx());
    CHECK(target_of(kernel, KVJIT_PROGRAM_MERGE) == without_amx());
    CHECK(world.warnings.size() == 1);  // of AMX alone: without it the two targets round alike
}

TEST_CASE("an engine that forbids AMX asks for nothing, has no program of it, and says nothing") {
    World world;
    const Setting at(world, true, false);
    const KernelPtr kernel = at.kernel();
    CHECK(target_of(kernel, KVJIT_PROGRAM_PREFILL) == without_amx());
    REQUIRE(kernel->prepare(KVJIT_ALL_PROGRAMS).has_value());
    check_all_for(world, without_amx(), 4);
    CHECK(world.warnings.empty());
    const gen::TargetList alone = {named("x86-64-v4-amx")};
    CHECK(at.kernel(kSpec, alone)->emit(KVJIT_PROGRAM_PREFILL, KVJIT_STAGE_SOURCE)->contains("amx"));
    const gen::Error error = at.kernel(kSpec, alone)->prepare(KVJIT_PROGRAM_PREFILL).error();
    CHECK(error.status == KVJIT_BAD_TARGET);
    CHECK(error.message == "target is x86-64-v4-amx; the engine's options forbid AMX (amx = 0)");
    CHECK(world.amx_requests == 0);
}

TEST_CASE("a target that was asked for by its name is refused with the reason, and nothing is compiled for it") {
    World world;
    world.amx_error = EPERM;
    const Setting at(world);
    const gen::TargetList alone = {named("x86-64-v4-amx")};
    const KernelPtr kernel = at.kernel(kSpec, alone);
    const gen::Error error = kernel->prepare(KVJIT_PROGRAM_PREFILL).error();
    CHECK(error.status == KVJIT_BAD_TARGET);
    CHECK(error.argument == "target");
    CHECK(error.message == "target is x86-64-v4-amx; the system refuses AMX (arch_prctl: Operation not permitted)");
    CHECK(world.compiles == 0);
    REQUIRE(kernel->prepare(kStep).has_value());
    check_all_for(world, alone[0], 2);
}

TEST_CASE("a bundle's program for AMX needs the permission as one that is compiled does") {
    const gen::Target level = named("x86-64-v4-amx"), lesser = named("x86-64-v3");
    for (const int error : {0, ENOSPC}) {
        World world;
        world.amx_error = error;
        const Setting at(world, false);
        for (const kvjit_programs program : {KVJIT_PROGRAM_DECODE, KVJIT_PROGRAM_PREFILL}) {
            for (const gen::Target& target : {level, lesser}) put(*at.bundle, kSpec, program, target);
        }
        const KernelPtr kernel = at.kernel();
        REQUIRE(kernel->prepare(KVJIT_PROGRAM_DECODE | KVJIT_PROGRAM_PREFILL).has_value());
        for (const kvjit_programs program : {KVJIT_PROGRAM_DECODE, KVJIT_PROGRAM_PREFILL}) {
            CHECK(target_of(kernel, program) == (error == 0 ? level : lesser));
        }
        CHECK(world.amx_requests == 1);
        CHECK(world.warnings.size() == (error == 0 ? 0 : 1));
    }
}

TEST_CASE("where a store has a lesser target's programs alone, nothing is asked") {
    World world;
    const Setting at(world);
    const gen::Target lesser = named("x86-64-v3");
    put(*at.bundle, kSpec, KVJIT_PROGRAM_STORE, lesser);
    const KernelPtr kernel = at.kernel();
    REQUIRE(kernel->prepare(KVJIT_ALL_PROGRAMS).has_value());
    CHECK(target_of(kernel, KVJIT_PROGRAM_PREFILL) == lesser);
    CHECK(world.amx_requests == 0);
}

TEST_CASE("threads of one kernel whose AMX is refused meanwhile get programs that agree") {
    World world;
    world.amx_error = ENOSPC;
    const Setting at(world);
    const KernelPtr kernel = at.kernel();
    std::vector<std::jthread> threads;
    for (const std::uint32_t asked : {kStep, std::uint32_t{KVJIT_PROGRAM_PREFILL}, KVJIT_ALL_PROGRAMS, kStep}) {
        threads.emplace_back([kernel, asked] { CHECK(kernel->prepare(asked).has_value()); });
    }
    threads.clear();
    CHECK(target_of(kernel, KVJIT_PROGRAM_PREFILL) == without_amx());
    CHECK(world.warnings.size() == 1);
    CHECK(world.amx_requests == 1);
}

TEST_CASE("nothing that uses AMX is loaded without the permission, whoever asks for it") {
    World world;
    world.amx_error = ENOSPC;
    const Setting at(world);
    put(*at.bundle, kSpec, KVJIT_PROGRAM_PREFILL, with_amx());
    const auto programs = gen::lower(spec_of(kSpec), with_amx());
    const Candidate prefill{&with_amx(), &*std::ranges::find(*programs, KVJIT_PROGRAM_PREFILL, bit_of)};
    CHECK(at.images->find({&prefill, 1}).error().status == KVJIT_BAD_TARGET);
    CHECK(at.images->make(prefill).error().status == KVJIT_BAD_TARGET);
    CHECK(world.loads == 0);
    CHECK(world.compiles == 0);
}

TEST_CASE("preparing many specs falls back as one does") {
    World world;
    world.amx_error = ENOSPC;
    Engine engine({options_over(world), 16});
    const std::vector<gen::KernelSpec> specs = {spec_of(kSpec), spec_of("head_dim=128,group=4")};
    REQUIRE(prepare_all(engine, specs, amx_host(), {}).has_value());
    check_all_for(world, without_amx(), 8);
    CHECK(world.amx_requests == 1);
}

TEST_CASE("a refusal tells what it is about") {
    TilePermission refused([] { return ENOSPC; }), granted([] { return 0; });
    CHECK(refused.state() == State::kUnasked);
    CHECK(refused.ask().error().contains("(sigaltstack) of less than "));
    CHECK(refused.state() == State::kRefused);
    CHECK(granted.ask().has_value());
    CHECK(granted.state() == State::kGranted);
}

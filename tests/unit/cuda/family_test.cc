// GPUs and architectures that the NVRTC at hand doesn't know, through the public API: an NVRTC and a driver made here.
#include "bundle/encode.h"
#include "call.h"
#include "common/abi.h"
#include "environment.h"
#include "support.h"
#include "support/temporary_folder.h"

using namespace kvjit;
using test::contains;
using test::FakeMachine;

namespace {

struct Kernels {
    test::TemporaryFolder folder;
    test::Variable nvrtc{"KVJIT_NVRTC", KVJIT_TEST_FAKE_NVRTC};

    Result<Kernel> make(const Result<Target>& target) const {
        EngineOptions options;
        options.cache_dir = folder.path().c_str();
        options.jit = 1;
        if (!target) return target.error();
        auto engine = Engine::create(options);
        return engine ? engine->kernel(*KernelSpec::parse(test::kCallSpec), *target) : engine.error();
    }
};

/// The stage's text of the decode program.
std::string emitted(const Kernel& kernel, kvjit_stage stage) {
    auto text = kernel.emit(stage, KVJIT_PROGRAM_DECODE);
    REQUIRE_MESSAGE(text, text.error().message());
    return *text;
}

/// What a kernel for `target` is named by and what NVRTC was asked for, which have to be one.
std::string compiled_for(const std::string& target) {
    CAPTURE(target);
    const Kernels kernels;
    const auto kernel = kernels.make(Target::cuda(target));
    REQUIRE_MESSAGE(kernel, kernel.error().message());
    const std::string log = emitted(*kernel, KVJIT_STAGE_LOG), option = "--gpu-architecture=";
    const std::size_t begin = log.find(option) + option.size();
    std::string architecture = log.substr(begin, log.find('\n', begin) - begin);
    CHECK(contains(emitted(*kernel, KVJIT_STAGE_IDENTITY), "nvptx64-nvidia-cuda:" + architecture + "\n"));
    return architecture;
}

}  // namespace

TEST_CASE("an architecture that NVRTC doesn't know is compiled as the newest of its generation that it does") {
    CHECK(compiled_for("sm_103") == "sm_100");
    CHECK(compiled_for("sm_103a") == "sm_100");
    CHECK(compiled_for("sm_121") == "sm_120");
    CHECK(compiled_for("sm_121f") == "sm_120");
    CHECK(compiled_for("sm_88") == "sm_86");  // 8.7 is a Jetson, whose code runs nowhere else
}

TEST_CASE("an architecture that NVRTC knows is compiled as it is named, a family that it doesn't know as its number") {
    for (const char* name : {"sm_80", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120a"}) {
        CHECK(compiled_for(name) == name);
    }
    CHECK(compiled_for("sm_100f") == "sm_100");
    CHECK(compiled_for("sm_120f") == "sm_120");
}

TEST_CASE("a generation of which NVRTC knows nothing is refused with what it knows") {
    const Kernels kernels;
    const auto kernel = kernels.make(Target::cuda("sm_110"));
    REQUIRE_MESSAGE(kernel, kernel.error().message());
    const auto text = kernel->emit(KVJIT_STAGE_LOG, KVJIT_PROGRAM_DECODE);
    REQUIRE_FALSE(text.has_value());
    CHECK(text.error().status() == KVJIT_BAD_TARGET);
    CHECK(contains(text.error().message(), "target is sm_110"));
    CHECK(contains(text.error().message(), " sm_100 sm_101 sm_120 "));
}

TEST_CASE("a GPU of a generation that NVRTC knows runs the newest code of that generation") {
    FakeMachine machine;
    machine.state().kernels = {"kvjit_store", "kvjit_attend_decode", "kvjit_attend_prefill", "kvjit_check"};
    machine.state().major = 10;
    machine.state().minor = 3;
    const Kernels kernels;
    const auto kernel = kernels.make(Target::cuda_device(1));
    REQUIRE_MESSAGE(kernel, kernel.error().message());
    CHECK(contains(emitted(*kernel, KVJIT_STAGE_IDENTITY), "nvptx64-nvidia-cuda:sm_100\n"));
    const test::ApiCall call = test::make_call(2, 1, 100);
    PlanOptions options;
    kvjit_batch batch = call.batch;
    batch.max_seqlen = 1;
    batch.max_kvlen = 100;
    auto plan = kernel->plan(batch, options);
    REQUIRE_MESSAGE(plan, plan.error().message());
    const auto done = plan->run(call.tensors);
    CHECK_MESSAGE(done, done.error().message());
    CHECK(machine.state().launches.size() == 3);
}

TEST_CASE("what a GPU runs out of a bundle is shown with its cubin and ptxas's report where no NVRTC is") {
    std::string identity, source, log, cubin;
    {
        const Kernels kernels;
        const auto kernel = kernels.make(Target::cuda("sm_80"));
        REQUIRE_MESSAGE(kernel, kernel.error().message());
        identity = kernel->images(KVJIT_PROGRAM_DECODE)->front().identity;
        source = emitted(*kernel, KVJIT_STAGE_SOURCE);
        log = emitted(*kernel, KVJIT_STAGE_LOG);
        cubin = emitted(*kernel, KVJIT_STAGE_OBJECT);
    }
    const std::string bundle = *rt::encode_bundle(
        abi::kKernelAbi, std::vector{rt::BundleEntry{{identity, "source=0;maker", "sm_80", cubin}, {source, log}}});
    FakeMachine machine;
    machine.state().kernels = {"kvjit_attend_decode"};
    machine.state().major = 8;
    machine.state().minor = 0;
    const test::Variable nvrtc("KVJIT_NVRTC", "/nowhere/libnvrtc.so");
    EngineOptions options;
    options.cache_dir = "";
    options.jit = 0;
    auto engine = Engine::create(options);
    REQUIRE(engine);
    REQUIRE(engine->add_bundle(bundle.data(), bundle.size()));
    const auto target = Target::cuda_device(0);
    REQUIRE_MESSAGE(target, target.error().message());
    const auto kernel = engine->kernel(*KernelSpec::parse(test::kCallSpec), *target);
    REQUIRE_MESSAGE(kernel, kernel.error().message());
    const auto prepared = kernel->prepare(KVJIT_PROGRAM_DECODE);
    REQUIRE_MESSAGE(prepared, prepared.error().message());
    const auto image = kernel->images(KVJIT_PROGRAM_DECODE)->front();
    CHECK(image.is_loaded);
    CHECK(image.origin == KVJIT_ORIGIN_BUNDLE);
    CHECK(image.target == "nvptx64-nvidia-cuda:sm_80");
    CHECK(image.identity == identity);
    CHECK(emitted(*kernel, KVJIT_STAGE_OBJECT) == cubin);
    CHECK(emitted(*kernel, KVJIT_STAGE_SOURCE) == source);
    CHECK(emitted(*kernel, KVJIT_STAGE_LOG) == log);
    CHECK(contains(log, "--gpu-architecture=sm_80\n"));
    CHECK(emitted(*kernel, KVJIT_STAGE_IDENTITY) == "identity: " + identity + "\nprovenance: source=0;maker\n");
}

// Whole calls through the public API: NVRTC compiles, the fake driver loads and launches. Without NVRTC: SKIP.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "call.h"
#include "cuda/nvrtc_compiler.h"
#include "support.h"
#include "support/temporary_folder.h"

using namespace kvjit;
using test::FakeMachine;

namespace {

void* const kStream = reinterpret_cast<void*>(0x2000);  // the caller's own
void* const kOtherStream = reinterpret_cast<void*>(0x2100);

bool has_nvrtc() {
    static const bool found = [] {
        const auto made = rt::make_nvrtc_compiler({});
        const auto output = made->compile("", "test", *gen::named_target("sm_80"), rt::CompileStage::kObject);
        const bool missing = !output && output.error().status == KVJIT_COMPILER_MISSING;
        if (missing) std::printf("SKIP: %s\n", output.error().message.c_str());
        return !missing;
    }();
    return found;
}

/// The cache is shared by all cases: each program is compiled once.
const std::string& cache_folder() {
    static const test::TemporaryFolder folder;
    return folder.path();
}

void install_kernels(FakeMachine& machine) {
    machine.state().kernels = {"kvjit_store", "kvjit_attend_decode", "kvjit_attend_prefill", "kvjit_check"};
}

Result<Kernel> make_kernel(EngineOptions options = {}) {
    options.cache_dir = cache_folder().c_str();
    options.jit = 1;
    const auto target = Target::cuda_device(0);
    const auto spec = KernelSpec::parse(test::kCallSpec);
    auto engine = Engine::create(options);
    if (!target) return target.error();
    if (!spec) return spec.error();
    if (!engine) return engine.error();
    return engine->kernel(*spec, *target);
}

Result<Plan> make_plan(const Kernel& kernel, const test::ApiCall& call, PlanOptions options) {
    kvjit_batch batch = call.batch;
    batch.max_seqlen = 1;
    batch.max_kvlen = 100;
    return kernel.plan(batch, options);
}
Result<Plan> make_plan(const Kernel& kernel, const test::ApiCall& call, void* stream = kStream) {
    PlanOptions options;
    options.stream = stream;
    return make_plan(kernel, call, options);
}

/// A plan of a kernel, whose handle is gone; `options`: as make_plan's.
template <class... Options>
Plan ready_plan(const test::ApiCall& call, Options... options) {
    const auto kernel = make_kernel();
    REQUIRE_MESSAGE(kernel, kernel.error().message());
    auto plan = make_plan(*kernel, call, options...);
    REQUIRE_MESSAGE(plan, plan.error().message());
    return *std::move(plan);
}

gen::Result<void> as_internal(const Error& error) {
    return gen::fail(error.status(), "", error.message());
}

/// Kernel, plan, two layers, the end.
gen::Result<void> whole_call(const test::ApiCall& call) {
    auto kernel = make_kernel();
    if (!kernel) return as_internal(kernel.error());
    auto plan = make_plan(*kernel, call);
    if (!plan) return as_internal(plan.error());
    for (int layer = 0; layer < 2; ++layer) {
        if (auto done = plan->run(call.tensors); !done) return as_internal(done.error());
    }
    if (auto done = plan->synchronize(); !done) return as_internal(done.error());
    // What goes at the end can't fail: in a broken context it would stay behind.
    int& fail_at = test::fake_cuda()->fail_at;
    if (fail_at > 0) fail_at += 1 << 20;
    return {};
}

}  // namespace

TEST_CASE("a run is launches on the plan's stream, and nothing else") {
    if (!has_nvrtc()) return;
    FakeMachine machine;
    install_kernels(machine);
    const test::ApiCall call = test::make_call(2, 1, 100);
    Plan plan = ready_plan(call);
    CHECK(machine.state().launches.empty());
    machine.state().calls.clear();
    const auto done = plan.run(call.tensors);
    REQUIRE_MESSAGE(done, done.error().message());
    CHECK(machine.state().launches.size() == 3);  // check, store, attend
    for (const test::FakeLaunch& launch : machine.state().launches) CHECK(launch.stream == kStream);
    for (const std::string& name : machine.state().calls) {
        const bool expected = name == "cuLaunchKernel" || name.starts_with("cuCtx");
        CHECK_MESSAGE(expected, name);
    }
}

TEST_CASE("under a capture plans are made and gone, and runs are captured") {
    if (!has_nvrtc()) return;
    FakeMachine machine;
    install_kernels(machine);
    machine.state().capturing = kStream;
    const test::ApiCall call = test::make_call(2, 1, 100);
    Plan plan = ready_plan(call);
    CHECK(plan.run(call.tensors).has_value());
    const auto waited = plan.synchronize();
    REQUIRE_FALSE(waited.has_value());
    CHECK(waited.error().status() == KVJIT_CUDA_ERROR);
}

namespace {

/// A plan whose runs are recorded, on a fake machine, and what its engine says of them. Precondition: there is NVRTC.
class RecordedPlan {
public:
    RecordedPlan() {
        state().enqueued.clear();
        state().calls.clear();
    }
    RecordedPlan(const RecordedPlan&) = delete;
    RecordedPlan& operator=(const RecordedPlan&) = delete;

    test::FakeCuda& state() { return machine_.state(); }
    int count(std::string_view call) { return machine_.count(call); }
    /// Whether a run succeeds.
    bool runs() { return plan_.run(call_.tensors).has_value(); }
    std::size_t files() const { return test::files_in(folder_.path("calls"), ".safetensors").size(); }
    const std::vector<std::string>& warnings() const { return warnings_; }

private:
    Plan make() {
        install_kernels(machine_);
        const auto log = [](void* context, std::int32_t level, const char* message) {
            if (level == KVJIT_LOG_WARNING) static_cast<RecordedPlan*>(context)->warnings_.emplace_back(message);
        };
        EngineOptions options;
        options.log = log;
        options.log_context = this;
        const std::string calls = folder_.path("calls");
        options.record = calls.c_str();
        const auto kernel = make_kernel(options);
        REQUIRE_MESSAGE(kernel, kernel.error().message());
        return make_plan(*kernel, call_).value();
    }

    FakeMachine machine_;
    test::ApiCall call_ = test::make_call(2, 1, 100);
    test::TemporaryFolder folder_;
    std::vector<std::string> warnings_;
    Plan plan_ = make();
};

constexpr std::size_t kLaunches = 3;  // of a run: check, store, attend

}  // namespace

TEST_CASE("a recorded run copies on the plan's stream, waits for it, and launches what it would have launched") {
    if (!has_nvrtc()) return;
    RecordedPlan plan;
    REQUIRE(plan.runs());
    CHECK(plan.state().launches.size() == kLaunches);
    CHECK(plan.warnings().empty());
    CHECK(plan.files() == 1);
    CHECK(plan.count("cuMemcpyDtoHAsync") > 5);
    for (const auto& [name, stream] : plan.state().enqueued) CHECK_MESSAGE(stream == kStream, name);
}

TEST_CASE("while the stream is captured nothing is recorded, which is said once, and nothing waits") {
    if (!has_nvrtc()) return;
    RecordedPlan plan;
    plan.state().capturing = kStream;
    for (int i = 0; i < 3; ++i) CHECK(plan.runs());
    CHECK(plan.state().launches.size() == 3 * kLaunches);
    CHECK(plan.count("cuStreamSynchronize") == 0);
    CHECK(plan.count("cuMemcpyDtoHAsync") == 0);
    REQUIRE(plan.warnings().size() == 1);
    CHECK_MESSAGE(test::contains(plan.warnings()[0], "its stream is being captured"), plan.warnings()[0]);
    plan.state().capturing = nullptr;
    CHECK(plan.runs());
    CHECK(plan.files() == 1);
}

TEST_CASE("a driver's failure that a recording meets is said, and fails no run") {
    if (!has_nvrtc()) return;
    RecordedPlan plan;
    REQUIRE(plan.runs());
    auto& calls = plan.state().calls;
    const auto copy = std::ranges::find(calls, "cuMemcpyDtoHAsync");
    REQUIRE(copy != calls.end());
    plan.state().fail_at = static_cast<int>(copy - calls.begin()) + 1;
    plan.state().fail_code = rt::cuda::kIllegalAddress;
    calls.clear();
    plan.state().launches.clear();
    CHECK(plan.runs());
    CHECK(plan.state().launches.size() == kLaunches);
    REQUIRE(plan.warnings().size() == 1);
    CHECK_MESSAGE(test::contains(plan.warnings()[0], "a call was not recorded: "), plan.warnings()[0]);
    CHECK(plan.files() == 1);
}

TEST_CASE("while another thread captures a stream, engine and plan on one's own come, serve and go") {
    if (!has_nvrtc()) return;
    FakeMachine machine;
    install_kernels(machine);
    machine.state().capturing = kOtherStream;
    const test::ApiCall call = test::make_call(2, 1, 100);
    gen::Result<void> done;
    std::thread([&] { done = whole_call(call); }).join();
    CHECK_MESSAGE(done.has_value(), done.error().message);
    for (const test::FakeLaunch& launch : machine.state().launches) CHECK(launch.stream == kStream);
}

TEST_CASE("while one plan's stream is captured, another plan runs on its own and is waited for") {
    if (!has_nvrtc()) return;
    FakeMachine machine;
    install_kernels(machine);
    const test::ApiCall call = test::make_call(2, 1, 100);
    Plan captured = ready_plan(call), free = ready_plan(call, kOtherStream);
    machine.state().capturing = kStream;
    for (Plan* plan : {&captured, &free, &captured}) CHECK(plan->run(call.tensors).has_value());
    CHECK(free.synchronize().has_value());
    CHECK_FALSE(captured.synchronize().has_value());
    std::string streams;
    for (const test::FakeLaunch& launch : machine.state().launches) streams += launch.stream == kStream ? 'c' : 'f';
    CHECK(streams == "cccfffccc");  // check, store, attend
}

TEST_CASE("a plan's own memory is made ready by one call, waited for once") {
    if (!has_nvrtc()) return;
    FakeMachine machine;
    install_kernels(machine);
    const test::ApiCall call = test::make_call(2, 1, 100);
    PlanOptions options;
    options.split_keys = 64;
    const Plan plan = ready_plan(call, options);
    CHECK(test::contains(plan.describe(), "decode splits: 2"));  // which need counters, beside the check's fault
    CHECK(machine.count("cuMemsetD8Async") == 1);
    CHECK(machine.count("cuStreamSynchronize") == 1);
}

namespace {

constexpr std::size_t kWorkspaceBytes = 1 << 20;

/// A caller's workspace, as it comes: full of what somebody left there.
struct GivenWorkspace {
    std::unique_ptr<void, decltype(&std::free)> memory{std::aligned_alloc(64, kWorkspaceBytes), std::free};

    GivenWorkspace() { fill(); }
    void fill() const { std::memset(memory.get(), 0xab, kWorkspaceBytes); }
    PlanOptions options() const {
        PlanOptions options;
        options.stream = kStream;
        options.split_keys = 64;
        options.workspace = memory.get();
        options.workspace_bytes = kWorkspaceBytes;
        return options;
    }
    /// Fault and counters, 64 bytes each.
    bool is_zeroed() const {
        const auto* bytes = static_cast<const unsigned char*>(memory.get());
        return std::all_of(bytes, bytes + 128, [](unsigned char byte) { return byte == 0; });
    }
};

}  // namespace

TEST_CASE("a given workspace is zeroed on the plan's stream, behind what still uses it and before the first run") {
    if (!has_nvrtc()) return;
    FakeMachine machine;
    install_kernels(machine);
    const test::ApiCall call = test::make_call(2, 1, 100);
    const GivenWorkspace workspace;
    machine.state().busy[kStream] = {[&] { workspace.fill(); }};  // a kernel that had the memory before
    Plan plan = ready_plan(call, workspace.options());
    CHECK_FALSE(workspace.is_zeroed());
    CHECK(machine.count("cuStreamSynchronize") == 0);
    REQUIRE(plan.run(call.tensors).has_value());
    using Enqueued = std::vector<std::pair<std::string, void*>>;
    const std::pair<std::string, void*> launch{"cuLaunchKernel", kStream};
    CHECK(machine.state().enqueued == Enqueued{{"cuMemsetD8Async", kStream}, launch, launch, launch});
    for (const auto& work : machine.state().busy[kStream]) work();
    CHECK(workspace.is_zeroed());
}

TEST_CASE("while the plan's stream is captured, a given workspace is zeroed at once, outside of the graph") {
    if (!has_nvrtc()) return;
    FakeMachine machine;
    install_kernels(machine);
    machine.state().capturing = kStream;
    const test::ApiCall call = test::make_call(2, 1, 100);
    const GivenWorkspace workspace;
    const Plan plan = ready_plan(call, workspace.options());
    CHECK(workspace.is_zeroed());
    CHECK(machine.state().enqueued.size() == 1);
    CHECK(machine.state().enqueued[0].second != kStream);
}

TEST_CASE("on the default stream, which a capture elsewhere closes, a given workspace is refused and left alone") {
    if (!has_nvrtc()) return;
    FakeMachine machine;
    install_kernels(machine);
    machine.state().capturing = kOtherStream;
    const test::ApiCall call = test::make_call(2, 1, 100);
    const GivenWorkspace workspace;
    PlanOptions options = workspace.options();
    options.stream = nullptr;
    const auto kernel = make_kernel();
    REQUIRE_MESSAGE(kernel, kernel.error().message());
    const auto plan = make_plan(*kernel, call, options);
    REQUIRE_FALSE(plan.has_value());
    CHECK(plan.error().status() == KVJIT_CUDA_ERROR);
    CHECK(test::contains(plan.error().message(), "captured into a graph"));
    CHECK(machine.state().enqueued.empty());
}

TEST_CASE("a plan's own memory is zeroed at once, whatever its stream holds") {
    if (!has_nvrtc()) return;
    FakeMachine machine;
    install_kernels(machine);
    const test::ApiCall call = test::make_call(2, 1, 100);
    machine.state().busy[kStream] = {[] { FAIL("waited for the stream"); }};
    const Plan plan = ready_plan(call);
    REQUIRE(machine.state().enqueued.size() == 1);
    CHECK(machine.state().enqueued[0].first == "cuMemsetD8Async");
    CHECK(machine.state().enqueued[0].second != kStream);
}

TEST_CASE("a plan without a workspace keeps the primary context") {
    if (!has_nvrtc()) return;
    FakeMachine machine;
    install_kernels(machine);
    test::fake_cuda_make_current(0, nullptr);  // as the CUDA runtime has it
    const test::ApiCall call = test::make_call(2, 1, 100);
    PlanOptions options;
    options.check_level = KVJIT_CHECK_NONE;
    options.split_keys = 128;
    const auto plan = [&]() -> Result<Plan> {
        const auto kernel = make_kernel();  // goes before the plan
        return kernel ? make_plan(*kernel, call, options) : kernel.error();
    }();
    REQUIRE_MESSAGE(plan, plan.error().message());
    CHECK(plan->workspace_bytes() == 0);
    CHECK(machine.state().retained[0] == 1);
}

TEST_CASE("whatever driver call fails in a whole call, it is said, and nothing stays behind") {
    if (!has_nvrtc()) return;
    const test::ApiCall call = test::make_call(2, 1, 100);
    const int calls = test::fail_everywhere([&](FakeMachine& machine) {
        install_kernels(machine);
        return whole_call(call);
    });
    CHECK(calls > 60);
}

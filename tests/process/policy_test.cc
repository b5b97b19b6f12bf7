// Processes that may not make code executable in the usual way, or have no room for it.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

#include "call.h"
#include "fixture.h"
#include "support/child_process.h"
#include "support/policy.h"

using namespace kvjit::test;

namespace {

/// Exit statuses of children.
enum Seen { kRight = 0, kNoPolicy, kNotRun, kCompiled, kWrongOutput, kWrongStatus, kNoAdvice };

bool maps_writable_code() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find("rwx") != std::string::npos) return true;
    }
    return false;
}

kvjit::EngineOptions options_for(const std::string& folder) {
    kvjit::EngineOptions options;
    options.cache_dir = folder.c_str();
    return options;
}

struct Outcome {
    kvjit_status status = KVJIT_OK;
    std::string message;
    bool compiled = false;  // or the compiler was opened
    std::uint64_t output = 0;
};

/// The call on a fresh engine over the folder.
Outcome run_call(const std::string& folder) {
    const auto engine = kvjit::Engine::create(options_for(folder));
    const auto kernel = engine->kernel(*kvjit::KernelSpec::parse(kCallSpec));
    const ApiCall call = make_call(2, 1, 40);
    const auto done = plan_and_run(*kernel, call);
    const kvjit_engine_stats stats = engine->stats();
    const bool compiled = stats.compiles != 0 || stats.compiler_load_seconds != 0;
    if (!done) return {done.error().status(), done.error().message(), compiled, 0};
    return {KVJIT_OK, "", compiled, output_hash(call)};
}

/// A folder with the call's programs, and what the call gives.
struct WarmCache : TemporaryFolder {
    WarmCache() { output = std::stoull(run_child(path())["output"]); }
    std::uint64_t output;
};

int check_warm_run(const WarmCache& cache) {
    const Outcome outcome = run_call(cache.path());
    if (outcome.status != KVJIT_OK) return kNotRun;
    if (outcome.compiled) return kCompiled;
    return outcome.output == cache.output && !maps_writable_code() ? kRight : kWrongOutput;
}

}  // namespace

TEST_CASE("under PR_SET_MDWE kernels are loaded from a warm cache, and compiled" * doctest::skip(!has_mdwe())) {
    const WarmCache cache;
    CHECK(in_child([&] { return set_mdwe() ? check_warm_run(cache) : kNoPolicy; }) == kRight);
    const TemporaryFolder empty;
    const auto compile = [&] {
        if (!set_mdwe()) return kNoPolicy;
        const Outcome outcome = run_call(empty.path());
        return outcome.output == cache.output ? kRight : kNotRun;
    };
    CHECK(in_child(compile) == kRight);
    CHECK(files_in(empty.path(), ".kvjit").size() > 0);
}

TEST_CASE("under a filter that refuses mprotect with PROT_EXEC kernels are loaded") {
    const WarmCache cache;
    CHECK(in_child([&] { return set_filter(Forbidden::kProtect) ? check_warm_run(cache) : kNoPolicy; }) == kRight);
}

TEST_CASE("a policy that comes when kernels are loaded already is found out") {
    const WarmCache cache;
    const auto before_and_after = [&] {
        if (run_call(cache.path()).status != KVJIT_OK) return kNotRun;
        return set_filter(Forbidden::kProtect) ? static_cast<Seen>(check_warm_run(cache)) : kNoPolicy;
    };
    CHECK(in_child(before_and_after) == kRight);
}

TEST_CASE("a policy that leaves no way is one clear error, and nothing is compiled for it") {
    const WarmCache cache;
    const auto refused = [](const std::string& folder) {
        const Outcome outcome = run_call(folder);
        if (outcome.status != KVJIT_BAD_TARGET) return kWrongStatus;
        if (outcome.message.find("MemoryDenyWriteExecute") == std::string::npos) return kNoAdvice;
        return outcome.compiled ? kCompiled : kRight;
    };
    const auto refused_at_once = [&] {
        if (!set_filter(Forbidden::kProtectAndFiles)) return kNoPolicy;
        const Seen warm = refused(cache.path());
        return warm == kRight ? refused("") : warm;
    };
    CHECK(in_child(refused_at_once) == kRight);
    const auto refused_later = [&] {
        if (run_call(cache.path()).status != KVJIT_OK) return kNotRun;
        return set_filter(Forbidden::kProtectAndFiles) ? refused(cache.path()) : kNoPolicy;
    };
    CHECK(in_child(refused_later) == kRight);
    const auto refused_by_a_limit = [&] {
        const rlimit no_files{0, 0};
        if (!set_filter(Forbidden::kProtect) || setrlimit(RLIMIT_FSIZE, &no_files) != 0) return kNoPolicy;
        return refused("");
    };
    CHECK(in_child(refused_by_a_limit) == kRight);
}

TEST_CASE("without address space for the compiler, that is what is said" * doctest::skip(kSanitized)) {
    for (const std::size_t mebibytes : {32, 128}) {  // for loading it; for a compile
        CAPTURE(mebibytes);
        const auto out_of_space = [&] {
            if (!limit_address_space(mebibytes << 20)) return kNoPolicy;
            const Outcome outcome = run_call("");
            if (outcome.status != KVJIT_OUT_OF_MEMORY) return kWrongStatus;
            return outcome.message.find("address space") != std::string::npos ? kRight : kNoAdvice;
        };
        CHECK(in_child(out_of_space) == kRight);
    }
    const auto enough = [] {
        if (!limit_address_space(1 << 30)) return kNoPolicy;
        return run_call("").status == KVJIT_OK ? kRight : kNotRun;
    };
    CHECK(in_child(enough) == kRight);
}

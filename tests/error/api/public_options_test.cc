// Options of engines, and bits of kernels, that stand for nothing.
#include <string>

#include "public_call.h"
#include "tensors_misuse.h"

namespace kvjit::test {
namespace {

void drop(void*, const char*, size_t) {}

void append(void* text, const char* piece, size_t size) {
    static_cast<std::string*>(text)->append(piece, size);
}

struct EngineMisuse {
    std::string_view name;
    void (*spoil)(kvjit_engine_options&);
    Refusal want;
};

constexpr EngineMisuse kEngineMisuses[] = {
    {"jit beyond on", [](kvjit_engine_options& o) { o.jit = 77; }, bad_argument("jit", 77, 1)},
    {"a bundle_key that is none", [](kvjit_engine_options& o) { o.bundle_key = "19bf44"; },
     bad_argument("bundle_key", 0, 0)},
    {"a bundle_key of zeros",
     [](kvjit_engine_options& o) { o.bundle_key = "0000000000000000000000000000000000000000000000000000000000000000"; },
     bad_argument("bundle_key", 0, 0)},
    {"jit below unset", [](kvjit_engine_options& o) { o.jit = -2; }, bad_argument("jit", -2, 1)},
    {"a cache of less than nothing", [](kvjit_engine_options& o) { o.cache_max_bytes = -5; },
     bad_argument("cache_max_bytes", -5, 0)},
    {"a log level above all", [](kvjit_engine_options& o) { o.log_level = 2; }, bad_argument("log_level", 2, 1)},
    {"a log level below all", [](kvjit_engine_options& o) { o.log_level = -3; }, bad_argument("log_level", -3, -2)},
    {"count_runs beyond on", [](kvjit_engine_options& o) { o.count_runs = 2; }, bad_argument("count_runs", 2, 1)},
    {"count_runs below unset", [](kvjit_engine_options& o) { o.count_runs = -2; }, bad_argument("count_runs", -2, 1)},
    {"amx beyond on", [](kvjit_engine_options& o) { o.amx = 2; }, bad_argument("amx", 2, 1)},
    {"amx below off", [](kvjit_engine_options& o) { o.amx = -1; }, bad_argument("amx", -1, 1)},
};

kvjit_engine_options in_memory() {
    kvjit_engine_options options;
    kvjit_engine_options_init(&options);
    options.cache_dir = "";
    return options;
}

TEST_CASE("bad engine options") {
    for (const EngineMisuse& misuse : kEngineMisuses) {
        CAPTURE(misuse.name);
        kvjit_engine_options options = in_memory();
        misuse.spoil(options);
        kvjit_engine* engine = nullptr;
        kvjit_error e = new_error();
        expect_error(kvjit_engine_create(&options, &engine, &e), e, misuse.want);
        CHECK(engine == nullptr);
    }
}

TEST_CASE("each value that an engine option takes") {
    for (const std::int32_t jit : {-1, 0, 1}) {
        CAPTURE(jit);
        kvjit_engine_options options = in_memory();
        options.jit = jit;
        options.amx = jit == 0 ? 0 : 1;
        options.cache_max_bytes = 0;
        kvjit_engine* made = nullptr;
        CHECK(kvjit_engine_create(&options, &made, nullptr) == KVJIT_OK);
        kvjit_engine_release(made);
    }
}

TEST_CASE("a check level that there is not is answered with those that there are") {
    TensorsCase c(kDensePlain);
    const Handle<kvjit_kernel> kernel = kernel_of(c.spec);
    kvjit_plan_options options;
    kvjit_plan_options_init(&options);
    options.check_level = 3;
    kvjit_plan* plan = nullptr;
    kvjit_error e = new_error();
    expect_error(kvjit_plan_create(kernel.get(), &c.batch, &options, &plan, &e), e,
                 bad_argument("check_level", 3, KVJIT_CHECK_NONE));
    CHECK(std::string(e.message) ==
          "check_level is 3; it takes 0 (KVJIT_CHECK_FULL), 1 (KVJIT_CHECK_BATCH) or 2 (KVJIT_CHECK_NONE)");
}

TEST_CASE("bad options of preparing") {
    kvjit_prepare_options options;
    kvjit_prepare_options_init(&options);
    options.num_threads = -1;
    kvjit_spec spec;
    kvjit_spec_init(&spec);
    kvjit_error e = new_error();
    expect_error(kvjit_engine_prepare(shared_engine(), &spec, 1, nullptr, &options, &e), e,
                 bad_argument("num_threads", -1, 0));
    options.num_threads = 0;
    options.programs = 128;
    expect_error(kvjit_engine_prepare(shared_engine(), &spec, 1, nullptr, &options, &e), e,
                 bad_argument("programs", 128, 127));
}

TEST_CASE("bits of no program, and programs that the op lacks") {
    kvjit_spec spec;
    kvjit_spec_init(&spec);
    const Handle<kvjit_kernel> kernel = kernel_of(spec);
    constexpr std::uint32_t kUnknown = 1U << 20 | KVJIT_PROGRAM_STORE;
    const Refusal unknown = bad_argument("programs", kUnknown, 127);
    const Refusal lacking =
        bad_argument("programs", KVJIT_PROGRAM_LOAD,
                     KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_DECODE | KVJIT_PROGRAM_PREFILL | KVJIT_PROGRAM_MERGE);
    kvjit_error e = new_error();
    expect_error(kvjit_kernel_prepare(kernel.get(), kUnknown, &e), e, unknown);
    expect_error(kvjit_kernel_emit(kernel.get(), kUnknown, KVJIT_STAGE_SOURCE, drop, nullptr, &e), e, unknown);
    expect_error(kvjit_kernel_emit(kernel.get(), KVJIT_PROGRAM_LOAD, KVJIT_STAGE_SOURCE, drop, nullptr, &e), e,
                 lacking);
    const auto never = [](void*, const kvjit_image_info*) { FAIL("an image is told"); };
    expect_error(kvjit_kernel_images(kernel.get(), kUnknown, never, nullptr, &e), e, unknown);
    expect_error(kvjit_kernel_images(kernel.get(), KVJIT_PROGRAM_LOAD, never, nullptr, &e), e, lacking);
    CHECK(kvjit_kernel_prepare(kernel.get(), KVJIT_PROGRAM_LOAD, &e) == KVJIT_OK);
    std::string told;
    expect_error(kvjit_engine_explain(shared_engine(), &spec, nullptr, kUnknown, append, &told, &e), e, unknown);
    expect_error(kvjit_engine_explain(shared_engine(), &spec, nullptr, KVJIT_PROGRAM_LOAD, append, &told, &e), e,
                 lacking);
    spec.head_dim = 12;
    expect_error(kvjit_engine_explain(shared_engine(), &spec, nullptr, KVJIT_ALL_PROGRAMS, append, &told, &e), e,
                 bad_spec("head_dim", 12, 8));
    CHECK(told.empty());
}

TEST_CASE("a text that is no identity is named with its line") {
    const std::string good = "merge;variant=simd;revision=1;abi=1;x86_64-unknown-linux-gnu:x86-64-v3\n";
    kvjit_error e = new_error();
    std::string told;
    expect_error(kvjit_identity_diff((good + "merge").c_str(), good.c_str(), append, &told, &e), e,
                 bad_argument("before", 2));
    expect_error(kvjit_identity_diff(good.c_str(), "", append, &told, &e), e, bad_argument("after"));
    CHECK(told.empty());
    CHECK(kvjit_identity_diff(good.c_str(), good.c_str(), append, &told, &e) == KVJIT_OK);
    CHECK(told == "merge: nothing\n");
}

TEST_CASE("stages are numbered from 0 to 5") {
    kvjit_spec spec;
    kvjit_spec_init(&spec);
    const Handle<kvjit_kernel> kernel = kernel_of(spec);
    kvjit_error e = new_error();
    const auto past = static_cast<kvjit_stage>(KVJIT_STAGE_IR_UNOPTIMISED + 1);
    expect_error(kvjit_kernel_emit(kernel.get(), KVJIT_ALL_PROGRAMS, past, drop, nullptr, &e), e,
                 bad_argument("stage", 7, KVJIT_STAGE_IR_UNOPTIMISED));
}

TEST_CASE("objects are handed out one at a time") {
    kvjit_spec spec;
    kvjit_spec_init(&spec);
    const Handle<kvjit_kernel> kernel = kernel_of(spec);
    constexpr std::uint32_t kBoth = KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_DECODE;
    std::string told;
    kvjit_error e = new_error();
    expect_error(
        kvjit_kernel_emit(kernel.get(), kBoth, KVJIT_STAGE_OBJECT, append, &told, &e), e,
        bad_argument("programs", kBoth,
                     KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_DECODE | KVJIT_PROGRAM_PREFILL | KVJIT_PROGRAM_MERGE));
    CHECK(told.empty());
    // A program that the op lacks doesn't count.
    CHECK(kvjit_kernel_emit(kernel.get(), KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_LOAD, KVJIT_STAGE_OBJECT, append, &told,
                            &e) == KVJIT_OK);
    CHECK(
        told.starts_with("\x7f"
                         "ELF"));
}

}  // namespace
}  // namespace kvjit::test

// A process and AMX: the system permits it to the whole process or not at all, and then limits its signal stacks. A
// machine without AMX runs the same calls; there nobody may ask for the permission.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <latch>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "call.h"
#include "support/child_process.h"
#include "support/policy.h"
#include "support/read_file.h"
#include "support/temporary_folder.h"

using namespace kvjit::test;

namespace {

/// Of attention that AMX serves.
constexpr char kSpec[] =
    "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=bf16,t2=bf16,cache_mode=page_table,page_size=16,layout=L2HTD";

/// Exit statuses of children.
enum Seen {
    kRight = 0,
    kNotSet,
    kNotRun,
    kWrongOutput,
    kWrongLog,
    kSmallStackTaken,
    kLargeStackRefused,
    kTilesHeld,
    kConfigurationLost
};

struct Outcome {
    bool ran = false;
    std::uint64_t output = 0;
    std::vector<std::string> warnings;
};

/// The same of a type of which AMX serves prefill alone.
constexpr char kHalfSpec[] =
    "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f16,t2=f16,cache_mode=page_table,page_size=16,layout=L2HTD";

/// Of codes, whose decode AMX and VNNI sum to the same bits.
constexpr char kCodesSpec[] =
    "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=bf16,quant_bit=8,quant_group=32,cache_mode=page_table,"
    "page_size=16,layout=L2HTD";

/// A prefill, or a decode, on an engine of its own that compiles anew. threads: 1 is the calling one; 0: all.
Outcome run_call(int amx, std::int64_t tokens = 70, const char* spec = kSpec, std::uint32_t threads = 0) {
    Outcome outcome;
    const auto log = [&](kvjit_log_level level, const char* message) {
        if (level == KVJIT_LOG_WARNING) outcome.warnings.emplace_back(message);
    };
    kvjit::EngineOptions options;
    options.cache_dir = "";
    options.amx = amx;
    options.set_log(log);
    const auto engine = kvjit::Engine::create(options);
    const auto kernel = engine->kernel(*kvjit::KernelSpec::parse(spec));
    const ApiCall call = make_call(2, tokens, 100, spec);
    kvjit::PlanOptions plan;
    plan.num_threads = threads;
    outcome.ran = plan_and_run(*kernel, call, plan).has_value();
    outcome.output = output_hash(call);
    return outcome;
}

/// Which of AMX's products this machine's kernels would use: of bfloat16 (kSpec), and of bytes (kCodesSpec).
struct Uses {
    bool bfloat16, bytes;
};

/// Asks for nothing.
Uses uses_amx() {
    kvjit::EngineOptions options;
    options.cache_dir = "";
    const auto engine = kvjit::Engine::create(options);
    const auto variant = [&](const char* spec, kvjit_programs program) {
        return engine->kernel(*kvjit::KernelSpec::parse(spec))->images(program)->front().variant;
    };
    const bool prefill = variant(kSpec, KVJIT_PROGRAM_PREFILL) == "amx";
    REQUIRE((variant(kSpec, KVJIT_PROGRAM_DECODE) == "amx") == prefill);
    return {prefill, variant(kCodesSpec, KVJIT_PROGRAM_DECODE) == "amx-int8"};
}

/// Whether the calling thread's tiles hold something, as XINUSE tells.
bool holds_tiles() {
    unsigned low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return (low >> 17 & 3) != 0;
}

/// What sigaltstack says of a stack of that many bytes for the calling thread.
int set_signal_stack(std::vector<char>& memory) {
    stack_t stack{};
    stack.ss_sp = memory.data();
    stack.ss_size = memory.size();
    return sigaltstack(&stack, nullptr) == 0 ? 0 : errno;
}

/// A thread of a host program, with the signal stack that such programs have had for long.
class ThreadWithSmallStack {
public:
    ThreadWithSmallStack() { is_ready_.wait(); }
    ~ThreadWithSmallStack() { may_end_.count_down(); }
    bool has_it() const { return has_it_; }

private:
    std::latch is_ready_{1}, may_end_{1};
    bool has_it_ = false;
    std::jthread thread_{[this] {
        std::vector<char> memory(8192);
        has_it_ = set_signal_stack(memory) == 0;
        is_ready_.count_down();
        may_end_.wait();
    }};
};

Seen check_fallback(bool has_amx, std::int64_t tokens, const char* spec) {
    const Outcome forbidden = run_call(0, tokens, spec), outcome = run_call(1, tokens, spec);
    if (!forbidden.ran || !outcome.ran) return kNotRun;
    if (outcome.output != forbidden.output) return kWrongOutput;
    if (!forbidden.warnings.empty()) return kWrongLog;
    if (outcome.warnings.size() != (has_amx ? 1 : 0)) return kWrongLog;
    return !has_amx || outcome.warnings[0].starts_with("AMX is not used: ") ? kRight : kWrongLog;
}

/// Whether prefill and decode give what they give where AMX is forbidden, and the log has a line about it where there
/// is AMX.
Seen check_fallback(Uses uses) {
    for (const auto& [has_amx, tokens, spec] :
         {std::tuple{uses.bfloat16, 70, kSpec}, {uses.bfloat16, 1, kSpec}, {uses.bytes, 1, kCodesSpec}}) {
        const Seen seen = check_fallback(has_amx, tokens, spec);
        if (seen != kRight) return seen;
    }
    return kRight;
}

void say_what_is_tested(bool has_amx) {
    if (!has_amx) MESSAGE("SKIP in part: kernels here have no AMX, for which to ask, or not all of it");
}

}  // namespace

TEST_CASE("a host program whose thread has a small signal stack gets the results of a machine without AMX") {
    const Uses uses = uses_amx();
    say_what_is_tested(uses.bfloat16 && uses.bytes);
    const auto with_small_stack = [&] {
        const ThreadWithSmallStack thread;
        return thread.has_it() ? check_fallback(uses) : kNotSet;
    };
    CHECK(in_child(with_small_stack) == kRight);
}

TEST_CASE("so does one whose policy refuses the permission") {
    const Uses uses = uses_amx();
    say_what_is_tested(uses.bfloat16 && uses.bytes);
    const auto refused = [&] { return set_filter(Forbidden::kAskForAmx) ? check_fallback(uses) : kNotSet; };
    CHECK(in_child(refused) == kRight);
}

// Decode has some of these numbers of tokens where there is AMX, and prefill where there is none.
TEST_CASE("the first plan of a process that is refused AMX has the results of a machine without it") {
    const Uses uses = uses_amx();
    say_what_is_tested(uses.bfloat16 && uses.bytes);
    for (const auto& [spec, tokens] :
         {std::pair{std::string(kHalfSpec), 4}, {kHalfSpec, 6}, {kCodesSpec, 4}, {kCodesSpec, 6}, {kCodesSpec, 8}}) {
        CAPTURE(spec);
        CAPTURE(tokens);
        const auto refused = [&] {
            if (!set_filter(Forbidden::kAskForAmx)) return kNotSet;
            const Outcome first = run_call(1, tokens, spec.c_str()), forbidden = run_call(0, tokens, spec.c_str());
            if (!first.ran || !forbidden.ran) return kNotRun;
            return first.output == forbidden.output ? kRight : kWrongOutput;
        };
        CHECK(in_child(refused) == kRight);
    }
}

TEST_CASE("who looks, decodes a token of float16, forbids AMX or has none asks for nothing") {
    const bool has_amx = uses_amx().bfloat16;
    const auto ask = [] {
        if (!set_filter(Forbidden::kAskForAmxFatally)) return kNotSet;
        syscall(SYS_arch_prctl, 0x1023, 18);
        return kRight;
    };
    REQUIRE(in_child(ask) == kBroken);
    const auto without_asking = [&] {
        if (!set_filter(Forbidden::kAskForAmxFatally)) return kNotSet;
        uses_amx();
        const bool ran =
            run_call(1, 1, kHalfSpec).ran && run_call(0).ran && run_call(0, 1).ran && (has_amx || run_call(1).ran);
        return ran ? kRight : kNotRun;
    };
    CHECK(in_child(without_asking) == kRight);
}

/// Runs commands where the process that asks for AMX ends.
void check_asks_for_nothing(const std::string& commands) {
    CAPTURE(commands);
    const TemporaryFolder folder;
    const std::string command = "cd '" + folder.path() + "' && { " + commands + "; } > said 2>&1";
    const auto run = [&] {
        if (!set_filter(Forbidden::kAskForAmxFatally)) return kNotSet;
        return std::system(command.c_str()) == 0 ? kRight : kNotRun;
    };
    const int seen = in_child(run);
    CHECK_MESSAGE(seen == kRight, read_file(folder.path() + "/said"));
}

TEST_CASE("commands that look at this machine, at kernels or at bundles, or make them, ask for nothing") {
    say_what_is_tested(uses_amx().bfloat16);
    const std::string tool = "'" KVJIT_TOOL "' ", spec = std::string(" '") + kSpec + "'";
    check_asks_for_nothing(tool + "doctor");
    for (const std::string emit : {"summary", "source", "asm", "object"})
        check_asks_for_nothing(tool + "inspect" + spec + " --program prefill --emit " + emit + " -o out");
    check_asks_for_nothing(tool + "bundle create k.kvjb -q --targets host" + spec + " && " + tool +
                           "bundle verify k.kvjb && " + tool + "bundle list k.kvjb");
}

TEST_CASE("once AMX is permitted, small signal stacks are refused to threads, and large ones aren't") {
    const bool has_amx = uses_amx().bfloat16;
    say_what_is_tested(has_amx);
    const auto run_first = [&] {
        if (!run_call(1).ran) return kNotRun;
        std::vector<char> small(8192), large(static_cast<std::size_t>(sysconf(_SC_MINSIGSTKSZ)) + 8192);
        if (set_signal_stack(small) != (has_amx ? ENOMEM : 0)) return kSmallStackTaken;
        return set_signal_stack(large) == 0 ? kRight : kLargeStackRefused;
    };
    CHECK(in_child(run_first) == kRight);
}

TEST_CASE("tiles are released where a call ends") {
    const Uses uses = uses_amx();
    say_what_is_tested(uses.bfloat16 && uses.bytes);
    if (!uses.bfloat16 && !uses.bytes) return;
    const auto run_each = [] {
        for (const auto& [tokens, spec] : {std::pair{70, kSpec}, {1, kSpec}, {1, kCodesSpec}}) {
            if (!run_call(1, tokens, spec, 1).ran) return kNotRun;
            if (holds_tiles()) return kTilesHeld;
        }
        return kRight;
    };
    CHECK(in_child(run_each) == kRight);
}

TEST_CASE("a decode of codes gives the same bits by AMX and without it") {
    say_what_is_tested(uses_amx().bytes);
    const auto run_both = [] {
        const Outcome by_amx = run_call(1, 1, kCodesSpec), without = run_call(0, 1, kCodesSpec);
        if (!by_amx.ran || !without.ran) return kNotRun;
        return by_amx.output == without.output ? kRight : kWrongOutput;
    };
    CHECK(in_child(run_both) == kRight);
}

/// A configuration of tiles as LDTILECFG takes it.
struct alignas(64) Configuration {
    std::uint8_t palette, start_row, reserved[14];
    std::uint16_t row_bytes[16];
    std::uint8_t rows[16];

    bool operator==(const Configuration&) const = default;
};

void load_configuration(const Configuration& from) {
    asm volatile("ldtilecfg %0" : : "m"(from));
}
Configuration stored_configuration() {
    Configuration to;
    asm volatile("sttilecfg %0" : "=m"(to));
    return to;
}

TEST_CASE("a caller's configuration of tiles is there after a call") {
    const Uses uses = uses_amx();
    say_what_is_tested(uses.bfloat16 && uses.bytes);
    if (!uses.bfloat16 || !uses.bytes) return;
    const auto keeps = [] {
        if (!run_call(1).ran) return kNotRun;
        for (const auto& [tokens, spec] : {std::pair{70, kSpec}, {1, kSpec}, {1, kCodesSpec}}) {
            // Of other shapes than kernels' tiles.
            const Configuration own = {1, 0, {}, {4, 8, 12, 16, 20, 24, 28, 32}, {1, 2, 3, 4, 5, 6, 7, 8}};
            load_configuration(own);
            if (!run_call(1, tokens, spec, 1).ran) return kNotRun;
            if (stored_configuration() != own) return kConfigurationLost;
        }
        return kRight;
    };
    CHECK(in_child(keeps) == kRight);
}

TEST_CASE("a process that is forked after the permission has it, and the same results" * doctest::skip(kSanitized)) {
    const auto parent = [] {
        const std::uint64_t before = run_call(1).output, decoded = run_call(1, 1).output;
        return in_child([&] {
            const Outcome child = run_call(1), decode = run_call(1, 1);
            if (!child.ran || !decode.ran) return kNotRun;
            return child.output == before && decode.output == decoded ? kRight : kWrongOutput;
        });
    };
    CHECK(in_child(parent) == kRight);
}

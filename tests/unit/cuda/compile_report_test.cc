// Reading ptxas's reports. The logs are those of NVRTC 12.4, 12.8 and 13.0.
#include "cuda/compile_report.h"

#include "support.h"

using namespace kvjit;

namespace {

// 12.4: no barriers, no times. Registers were forced to 64 by __launch_bounds__(128, 8).
constexpr std::string_view kSpilling = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'light' for 'sm_89'
ptxas info    : Function properties for light
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, 360 bytes cmem[0]
ptxas info    : Compiling entry function 'heavy' for 'sm_89'
ptxas info    : Function properties for heavy
ptxas         .     6368 bytes stack frame, 15608 bytes spill stores, 30540 bytes spill loads
ptxas info    : Used 64 registers, 6368 bytes cumulative stack size, 1024 bytes smem, 376 bytes cmem[0]
)";

// 12.8, for sm_90a.
constexpr std::string_view kTimed = R"(ptxas info    : 274 bytes gmem
ptxas info    : Compiling entry function 'kvjit_attend_decode' for 'sm_90a'
ptxas info    : Function properties for kvjit_attend_decode
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 181 registers, used 1 barriers
ptxas info    : Compile time = 131.071 ms
)";

// 13.0, for sm_120a, behind a warning of NVRTC's own.
constexpr std::string_view kWarned =
    R"(templates/cuda/store.cu(12): warning #177-D: variable "x" was declared but never referenced

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'heavy' for 'sm_120a'
ptxas info    : Function properties for heavy
ptxas         .     10240 bytes stack frame, 26124 bytes spill stores, 46772 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 10240 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 3719.734 ms
)";

void check(const rt::EntryReport& report, const char* entry, int registers, int stack, int stores, int loads,
           int shared) {
    CHECK(report.entry == entry);
    CHECK(report.registers == registers);
    CHECK(report.stack_bytes == stack);
    CHECK(report.spill_store_bytes == stores);
    CHECK(report.spill_load_bytes == loads);
    CHECK(report.shared_bytes == shared);
}

}  // namespace

TEST_CASE("each entry has its registers, stack, spills and static shared memory") {
    const auto reports = rt::parse_compile_report(kSpilling);
    REQUIRE(reports.size() == 2);
    check(reports[0], "light", 8, 0, 0, 0, 0);
    check(reports[1], "heavy", 64, 6368, 15608, 30540, 1024);
}

TEST_CASE("newer reports, times and warnings are read as well") {
    const auto timed = rt::parse_compile_report(kTimed);
    REQUIRE(timed.size() == 1);
    check(timed[0], "kvjit_attend_decode", 181, 0, 0, 0, 0);
    const auto warned = rt::parse_compile_report(kWarned);
    REQUIRE(warned.size() == 1);
    check(warned[0], "heavy", 64, 10240, 26124, 46772, 1024);
}

TEST_CASE("what a log doesn't say is unknown, not 0") {
    CHECK(rt::parse_compile_report("").empty());
    CHECK(rt::parse_compile_report("store.cu(3): error: Used 3 registers").empty());
    const auto reports = rt::parse_compile_report("ptxas info    : Compiling entry function 'one' for 'sm_90a'\nUsed");
    REQUIRE(reports.size() == 1);
    check(reports[0], "one", -1, -1, -1, -1, 0);
}

TEST_CASE("lines that break off are no reports") {
    const std::string_view whole = kSpilling;
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
        const std::string cut(whole.substr(0, bytes));
        for (const rt::EntryReport& report : rt::parse_compile_report(cut)) CHECK_FALSE(report.entry.empty());
    }
}

TEST_CASE("times and empty lines leave the log, all else stays") {
    const std::string kept = rt::without_times(kWarned);
    CHECK_FALSE(test::contains(kept, "Compile time"));
    CHECK_FALSE(test::contains(kept, "\n\n"));
    CHECK(test::contains(kept, "warning #177-D"));
    CHECK(test::contains(kept, "Used 64 registers"));
    CHECK(rt::without_times(kept) == kept);
    CHECK(rt::without_times("").empty());
}

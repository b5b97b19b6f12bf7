// The table of environment variables: what is said of values and names that it doesn't have, and that documents,
// sources and tests agree with it.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "environment.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "c_struct.h"

using namespace kvjit;
using rt::Variable;

namespace {

namespace fs = std::filesystem;

const fs::path kSources = KVJIT_TEST_SOURCES;

/// One variable of the environment, which is as it was once the test is over.
class Setting {
public:
    Setting(const std::string& name, const std::string& value) : name_(name) {
        if (const char* before = getenv(name.c_str())) before_ = before;
        setenv(name.c_str(), value.c_str(), 1);
    }
    ~Setting() { before_ ? setenv(name_.c_str(), before_->c_str(), 1) : unsetenv(name_.c_str()); }
    Setting(const Setting&) = delete;
    Setting& operator=(const Setting&) = delete;

private:
    std::string name_;
    std::optional<std::string> before_;
};

/// What an engine's log hears of a variable: messages that begin with its name.
std::vector<std::string> said_of(const std::string& name, const std::string& value) {
    const Setting setting(name, value);
    std::vector<std::string> said;
    rt::report_environment([&](kvjit_log_level level, const std::string& message) {
        if (message.starts_with(name + " ")) said.push_back(message);
        CHECK(level == KVJIT_LOG_WARNING);
    });
    return said;
}

std::string text_of(const fs::path& file) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

/// The first group of each match.
std::set<std::string> matches(const std::string& text, const std::string& pattern) {
    const std::regex compiled(pattern);
    std::set<std::string> found;
    for (std::sregex_iterator it(text.begin(), text.end(), compiled), end; it != end; ++it) found.insert((*it)[1]);
    return found;
}

std::set<std::string> table_names() {
    std::set<std::string> names;
    for (const rt::VariableInfo& variable : rt::environment_variables()) names.insert(variable.name);
    return names;
}

}  // namespace

TEST_CASE("a value that a variable doesn't take is said once, with what it takes and what happens") {
    CHECK(said_of("KVJIT_PERF", "2") ==
          std::vector<std::string>{"KVJIT_PERF is \"2\"; it takes 0, 1 or jitdump: it counts as 0"});
    CHECK(said_of("KVJIT_LINE_INFO", "maybe") ==
          std::vector<std::string>{"KVJIT_LINE_INFO is \"maybe\"; it takes 0 or 1: it counts as 0"});
    CHECK(said_of("KVJIT_JIT", "ON") ==
          std::vector<std::string>{"KVJIT_JIT is \"ON\"; it takes on or off: engines with jit = -1 are refused"});
    CHECK(said_of("KVJIT_CACHE_MAX_BYTES", "1G") ==
          std::vector<std::string>{"KVJIT_CACHE_MAX_BYTES is \"1G\"; it takes a number of bytes from 0 to 2^63-1: it "
                                   "counts as 512 MiB"});
    CHECK(said_of("KVJIT_EMULATION_SEED", "-1") ==
          std::vector<std::string>{
              "KVJIT_EMULATION_SEED is \"-1\"; it takes a number from 0 to 2^64-1: cuda-emulated is refused"});
    CHECK(
        said_of("KVJIT_CPU_MASK", "avx512") ==
        std::vector<std::string>{"KVJIT_CPU_MASK is \"avx512\"; it takes CPU features beyond x86-64's, with commas, as "
                                 "avx512bf16,avx512vnni: no feature is taken away"});
    const auto record = said_of("KVJIT_RECORD", "/calls:every=2,call=x");
    REQUIRE(record.size() == 1);
    CHECK_MESSAGE(record[0].starts_with("KVJIT_RECORD has \"call=x\"; its value is a whole number from 1 to "),
                  record[0]);
    CHECK_MESSAGE(record[0].ends_with(": nothing is recorded"), record[0]);
}

TEST_CASE("nothing is said of values that variables take, nor of empty ones") {
    for (const auto& [name, value] :
         std::vector<std::pair<const char*, const char*>>{{"KVJIT_JIT", "on"},
                                                          {"KVJIT_JIT", "off"},
                                                          {"KVJIT_PERF", "1"},
                                                          {"KVJIT_PERF", "0"},
                                                          {"KVJIT_PERF", "jitdump"},
                                                          {"KVJIT_LINE_INFO", "1"},
                                                          {"KVJIT_DEBUG", "frames"},
                                                          {"KVJIT_DEBUG", "1"},
                                                          {"KVJIT_EMULATION_SEED", "18446744073709551615"},
                                                          {"KVJIT_CACHE_MAX_BYTES", "0"},
                                                          {"KVJIT_CACHE_MAX_BYTES", "9223372036854775807"},
                                                          {"KVJIT_CPU_MASK", "avx512f,gfni"},
                                                          {"KVJIT_LOG", "trace"},
                                                          {"KVJIT_CACHE_DIR", "/x"}}) {
        CAPTURE(name);
        CHECK(said_of(name, value).empty());
    }
    for (const std::string& name : table_names()) CHECK(said_of(name, "").empty());
}

TEST_CASE("a name that kvjit doesn't have is said with the nearest one") {
    for (const auto& [name, nearest] :
         std::vector<std::pair<const char*, const char*>>{{"KVJIT_CACHEDIR", "KVJIT_CACHE_DIR"},
                                                          {"KVJIT_CACHE", "KVJIT_CACHE_DIR"},
                                                          {"KVJIT_PREF", "KVJIT_PERF"},
                                                          {"KVJIT_NVTRC", "KVJIT_NVRTC"},
                                                          {"KVJIT_LINEINFO", "KVJIT_LINE_INFO"},
                                                          {"KVJIT_JTI", "KVJIT_JIT"},
                                                          {"KVJIT_COMPILER_PATH", "KVJIT_COMPILER"},
                                                          {"KVJIT_TEMPLATES_DIR", "KVJIT_TEMPLATE_DIR"},
                                                          {"KVJIT_SEED_EMULATION", "KVJIT_EMULATION_SEED"}}) {
        const std::string expected = std::string(name) +
                                     " in the environment does nothing: kvjit has no such variable; the nearest is " +
                                     nearest;
        CHECK(said_of(name, "1") == std::vector<std::string>{expected});
    }
    CHECK(said_of("KVJI_JIT", "1").empty());
}

TEST_CASE("a switch is on where it is 1") {
    for (const auto& [value, on] : {std::pair{"1", true}, {"0", false}, {"", false}, {"2", false}, {"on", false}}) {
        const Setting setting("KVJIT_LINE_INFO", value);
        CHECK(rt::is_switched_on(Variable::kLineInfo) == on);
    }
}

TEST_CASE("a mask takes the features that it names, and none where it isn't understood") {
    const auto mask_of = [](const char* value) {
        const Setting setting("KVJIT_CPU_MASK", value);
        return rt::cpu_mask_of_environment();
    };
    CHECK(kvjit::gen::has_feature(mask_of("fma,avx2"), "avx2"));
    CHECK(mask_of("fma,avx2").count() == 2);
    for (const char* value : {"", "sse2", "fma,none"}) CHECK(mask_of(value).none());
}

TEST_CASE("the cache's limit is what the options are set to, 512 MiB where it isn't understood") {
    const auto limit_of = [](const char* value) {
        const Setting setting("KVJIT_CACHE_MAX_BYTES", value);
        return rt::defaults<kvjit_engine_options>().cache_max_bytes;
    };
    CHECK(limit_of("0") == 0);
    CHECK(limit_of("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
    for (const char* otherwise : {"", "x", "-1", "1.5", "9223372036854775808"}) {
        CHECK(limit_of(otherwise) == std::int64_t{512} << 20);
    }
}

TEST_CASE("a seed is a number of 64 bits, 1 where there is none, or refused") {
    const auto seed_of = [](const char* value) {
        const Setting setting("KVJIT_EMULATION_SEED", value);
        return rt::seed_of_environment();
    };
    CHECK(*seed_of("18446744073709551615") == ~std::uint64_t{0});
    CHECK(*seed_of("") == 1);
    for (const char* bad : {"x", "12x", "-1", " 1", "18446744073709551616"}) {
        const auto seed = seed_of(bad);
        REQUIRE_FALSE(seed.has_value());
        CHECK(seed.error().status == KVJIT_CUDA_ERROR);
        CHECK(seed.error().message.contains("KVJIT_EMULATION_SEED is \"" + std::string(bad) + "\""));
    }
}

TEST_CASE("each row of the table is found by its enumerator") {
    for (const rt::VariableInfo& variable : rt::environment_variables()) {
        const Setting setting(variable.name, "mark");
        CHECK(rt::environment_text(variable.variable) == "mark");
    }
}

TEST_CASE("the documents list exactly the table's variables") {
    CHECK(matches(text_of(kSources / "docs/compiling.md"), R"(\n\| `(KVJIT_\w+)` \|)") == table_names());
}

TEST_CASE("nothing else reads the environment") {
    for (const char* folder : {"generator", "runtime/src"}) {
        for (const fs::directory_entry& file : fs::recursive_directory_iterator(kSources / folder)) {
            if (!file.is_regular_file() || file.path().filename() == "environment.cc") continue;
            CHECK_MESSAGE(!text_of(file.path()).contains("getenv("), file.path().string());
        }
    }
}

TEST_CASE("variables of kvjit's build and tests are left alone") {
    std::set<std::string> names = matches(text_of(kSources / "CMakeLists.txt"), R"(option\((KVJIT_\w+))");
    for (const fs::directory_entry& file : fs::recursive_directory_iterator(kSources / "tests")) {
        if (file.path().extension() == ".cc")
            names.merge(matches(text_of(file.path()), R"re(getenv\("(KVJIT_\w+)"\))re"));
    }
    CHECK(names.contains("KVJIT_CPU_JIT"));
    CHECK(names.contains("KVJIT_TEST_SEED"));
    for (const std::string& name : names) CHECK_MESSAGE(said_of(name, "1").empty(), name);
}

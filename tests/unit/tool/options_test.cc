// Commands: found, parsed, explained.
#include "command/options.h"

#include <doctest/doctest.h>

#include "command/find.h"
#include "command/help.h"

namespace kvjit::tool {
namespace {

struct Values {
    std::vector<std::string> files, kinds;
    std::string one = "red";
    int count = 3;
    bool loud = false;
};
Values values;

Action declare(Options& options) {
    values = {};
    options.text("FILE", values.files, kFile, "Files to paint")->required();
    options.choice("--one", values.one, {"red", "blue"}, "A colour");
    options.choices("--kinds", values.kinds, {"wall", "door"}, "Kinds");
    options.number("-n,--count", values.count, 1, 9, "How often");
    CLI::Option* loud = options.flag("--loud", values.loud, "Say so");
    loud->excludes(options.flag("--quiet", values.loud, "Don't"));
    return [] { return Result<int>(7); };
}

constexpr Command kPaint = {.name = "paint",
                            .summary = "Paint files",
                            .declare = declare,
                            .about = "Dry\nslowly.\n\n    kept   as it is",
                            .examples = "tool room paint a.txt\n",
                            .status = "0 painted"};
constexpr const Command* kOfRoom[] = {&kPaint};
constexpr Command kRoom = {.name = "room", .summary = "Rooms", .commands = kOfRoom};
constexpr const Command* kOfRoot[] = {&kRoom};
constexpr Command kRoot = {.name = "tool", .summary = "A tool", .commands = kOfRoot};

Result<bool> parse(const std::vector<std::string>& arguments) {
    Options options(kRoot, {&kPaint, "tool room paint"});
    declare(options);
    return options.parse(arguments);
}

TEST_CASE("words find a command, and leave the rest") {
    const std::vector<std::string> words = {"room", "paint", "a.txt"};
    std::span<const std::string> rest = words;
    const auto found = find_called(kRoot, rest);
    REQUIRE(found.has_value());
    CHECK(found->command == &kPaint);
    CHECK(found->words == "tool room paint");
    CHECK(rest.size() == 1);
    const std::vector<std::string> wrong = {"room", "pant"};
    rest = wrong;
    CHECK(find_called(kRoot, rest).error() == "'pant' is no command of tool room; it takes paint; did you mean paint?");
}

TEST_CASE("values are parsed and defaults kept") {
    REQUIRE(parse({"a", "--kinds", "wall,door", "b", "-n", "9"}) == true);
    CHECK(values.files == std::vector<std::string>{"a", "b"});
    CHECK(values.kinds == std::vector<std::string>{"wall", "door"});
    CHECK(values.count == 9);
    CHECK(values.one == "red");
    CHECK(parse({"--help"}) == false);
}

TEST_CASE("each mistake has its sentence") {
    const std::pair<std::vector<std::string>, std::string> cases[] = {
        {{}, "FILE is missing; kvjit help room paint says more"},
        {{"a", "--one", "bleu"}, "--one is 'bleu'; it takes red, blue; did you mean blue?"},
        {{"a", "--kinds", "wall,dor"}, "--kinds is 'dor'; it takes wall, door; did you mean door?"},
        {{"a", "-n", "10"}, "--count is '10'; it takes a whole number from 1 to 9"},
        {{"a", "--count", "-1"}, "--count is '-1'; it takes a whole number from 1 to 9"},
        {{"a", "--count", "1.5"}, "--count is '1.5'; it takes a whole number from 1 to 9"},
        {{"a", "--cuont", "1"},
         "'--cuont' is no option of tool room paint; did you mean --count? kvjit help room paint says more"},
        {{"--kind=wall"},
         "'--kind' is no option of tool room paint; did you mean --kinds? kvjit help room paint says more"},
        {{"a", "--one"}, "--one lacks a value; kvjit help room paint says more"},
        {{"a", "--loud", "--quiet"}, "--loud and --quiet can't be given together"},
    };
    for (const auto& [arguments, said] : cases) {
        const auto parsed = parse(arguments);
        REQUIRE(!parsed.has_value());
        CHECK(parsed.error() == said);
    }
}

TEST_CASE("help has every option, what it takes and its default; the man page has the same") {
    const std::string help = help_text(kRoot, {&kPaint, "tool room paint"});
    for (const char* part :
         {"Usage: tool room paint [OPTION...] FILE...\n", "  FILE...", "-n, --count N", "How often [3]",
          "A colour: red, blue [red]", "Kinds: wall, door\n", "  --loud", "  Dry slowly.\n",
          "\n      kept   as it is\n", "  tool room paint a.txt\n", "Exit status:\n  0 painted.\n"}) {
        CHECK_MESSAGE(help.find(part) != help.npos, help);
    }
    const std::string page = man_page(kRoot);
    for (const char* part :
         {".TH KVJIT 1", ".SS \"tool room paint\"", "\\-n, \\-\\-count N", "How often [3]", "    kept   as it is"}) {
        CHECK_MESSAGE(page.find(part) != page.npos, page);
    }
}

}  // namespace
}  // namespace kvjit::tool

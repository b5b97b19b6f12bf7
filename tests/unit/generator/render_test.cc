// Rendering: one self-contained text that points back to its templates.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include "generator/render.h"
#include "lowered.h"

using namespace kvjit::gen;

namespace {

const Target kTarget = *named_target("x86-64-v2");

Program merge() {
    return lowered("op=Merge,head_dim=64", kTarget).front();
}

/// A folder of templates in memory.
TemplateReader in_memory(std::map<std::string, std::string, std::less<>> files) {
    return [files = std::move(files)](std::string_view path) -> Result<std::string> {
        const auto it = files.find(path);
        if (it == files.end()) return fail(KVJIT_BAD_FILE, std::string(path), "no " + std::string(path));
        return it->second;
    };
}

}  // namespace

TEST_CASE("every program of every op renders without an include left") {
    for (const char* text : {"op=KeyValueCache,quant_bit=4", "op=MultiHeadCacheAttention,quant_bit=8", "op=Merge"}) {
        for (const Program& program : lowered(text, kTarget)) {
            const Result<std::string> source = render(program, kTarget, embedded_templates());
            REQUIRE_MESSAGE(source.has_value(), source.error().message);
            CHECK(!source->contains("\n#include"));
            CHECK(!source->contains("#pragma once"));
            CHECK(source->contains(program.info->entry()));
            CHECK(source->contains(identity_text(program, kTarget)));
            for (const Constant& constant : program.constants) {
                CHECK(source->contains(" " + constant.name + " = " + constant.value + ";"));
            }
        }
    }
}

TEST_CASE("numbered sections stand in entry files alone, in ascending order, up to the entry point") {
    const std::regex section("\n// ---- ([0-9])\\. ");
    const auto numbers = [&](const std::string& text) {
        std::string all;
        for (std::sregex_iterator at(text.begin(), text.end(), section), end; at != end; ++at) all += (*at)[1];
        return all;
    };
    for (const char* op : {"KeyValueCache", "MultiHeadCacheAttention,group=4", "Merge", "Relayout"}) {
        for (const char* target : {"x86-64-v2", "sm_90a"}) {
            for (const Program& program : lowered(std::string("op=") + op, *named_target(target))) {
                const std::string own = numbers(*embedded_templates()(program.variant->template_path));
                CHECK_MESSAGE((std::ranges::is_sorted(own) && own.ends_with('7')), program.variant->template_path);
                CHECK(numbers(*render(program, *named_target(target), embedded_templates())) == own);
            }
        }
    }
}

TEST_CASE("includes are flattened once, in place, and #line names every line's template") {
    const TemplateReader read = in_memory({{"cpu/merge.cc", "#include \"a.h\"\n#include \"b.h\"\nint main_line;\n"},
                                           {"a.h", "#pragma once\n#include \"b.h\"\nint a_line;\n"},
                                           {"b.h", "int b_line;\n"}});
    const Result<std::string> source = render(merge(), kTarget, read);
    REQUIRE(source.has_value());
    std::map<std::string, std::string> places;
    std::istringstream lines(*source);
    std::string line, file;
    int number = 0;
    while (std::getline(lines, line)) {
        if (line.starts_with("#line ")) {
            std::istringstream(line.substr(6)) >> number >> file;
        } else {
            if (line.starts_with("int ")) places[line] += file + std::to_string(number);
            ++number;
        }
    }
    CHECK(places == std::map<std::string, std::string>{{"int b_line;", "\"templates/b.h\"1"},
                                                       {"int a_line;", "\"templates/a.h\"3"},
                                                       {"int main_line;", "\"templates/cpu/merge.cc\"3"}});
}

TEST_CASE("a missing include and a system include are errors that say where") {
    const Result<std::string> missing = render(merge(), kTarget, in_memory({{"cpu/merge.cc", "#include \"x.h\"\n"}}));
    CHECK(missing.error().status == KVJIT_BAD_FILE);
    CHECK(missing.error().argument == "x.h");
    const Result<std::string> system =
        render(merge(), kTarget, in_memory({{"cpu/merge.cc", "int x;\n#include <vector>\n"}}));
    CHECK(system.error().message.contains("cpu/merge.cc:2"));
}

TEST_CASE("a template folder reads the same as the library's own") {
    const Result<std::string> embedded = render(merge(), kTarget, embedded_templates());
    const Result<std::string> folder = render(merge(), kTarget, templates_of(KVJIT_TEMPLATES).read);
    REQUIRE(folder.has_value());
    CHECK(*embedded == *folder);
    const Result<std::string> missing = render(merge(), kTarget, templates_of("/nonexistent/").read);
    REQUIRE(!missing.has_value());
    CHECK(missing.error().message ==
          "the template /nonexistent/cpu/merge.cc can't be read: No such file or directory; KVJIT_TEMPLATE_DIR or "
          "template_dir of the engine's options names its folder");
}

TEST_CASE("a compiler's message names the files of the folder that has the templates") {
    const std::string_view message =
        "merge doesn't compile:\ntemplates/cpu/a.h:1:2: error: templates/ of x/templates/y\n"
        "templates/cuda/b.h(3): error at line 4 of templates/cuda/c.h";
    CHECK(with_files_of(templates_of(""), message) == message);
    for (const char* folder : {"/my/edited", "/my/edited/"}) {
        CHECK(with_files_of(templates_of(folder), message) ==
              "merge doesn't compile:\n/my/edited/cpu/a.h:1:2: error: /my/edited/ of x/templates/y\n"
              "/my/edited/cuda/b.h(3): error at line 4 of /my/edited/cuda/c.h");
    }
}

TEST_CASE("the checked-in spec block names every constant that rendering sets") {
    const Result<std::string> block = embedded_templates()("common/spec_block.h");
    REQUIRE(block.has_value());
    for (const char* name : {"x86-64-v2", "sm_90a"}) {
        const Target target = *named_target(name);
        for (const char* text : {"op=KeyValueCache,quant_bit=4", "op=MultiHeadCacheAttention", "op=Merge"}) {
            for (const Program& program : lowered(text, target)) {
                for (const Constant& constant : program.constants) {
                    CHECK_MESSAGE(block->contains(" " + constant.name + " = "), constant.name);
                }
            }
        }
        for (const Constant& constant : target_constants(target)) CHECK(block->contains(" " + constant.name + " = "));
    }
}

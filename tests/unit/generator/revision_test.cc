// A program's revision is part of its identity, so that a store of older kernels never answers for mended ones. Here
// each template is tied to its revision by a digest of its text, comments and blanks left out: nobody changes the one
// and forgets the other.
#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <iomanip>
#include <map>
#include <set>
#include <sstream>

#include "generator/render.h"
#include "generator/variant.h"

using namespace kvjit::gen;

namespace {

/// Feeds a template and what it includes, each file once, to `take`. A GPU's kernels see the primitives in PTX.
void visit(std::string path, std::set<std::string>& seen, const std::function<void(std::string_view)>& take) {
    if (path == "common/spec_block.h") return;  // its constants are in the identity
    if (path == "cuda/primitives.h") path = "cuda/primitives_ptx.h";
    if (!seen.insert(path).second) return;
    std::istringstream lines(*embedded_templates()(path));
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("#include \"")) {
            visit(line.substr(10, line.find('"', 10) - 10), seen, take);
        } else {
            take(std::string_view(line).substr(0, line.find("//")));
        }
    }
}

/// FNV-1a, 64 bits, of all that isn't blank.
std::string digest_of(std::string_view template_path) {
    std::uint64_t digest = 0xcbf29ce484222325;
    std::set<std::string> seen;
    visit(std::string(template_path), seen, [&](std::string_view code) {
        for (const char c : code) {
            if (c != ' ') digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3;
        }
    });
    std::ostringstream text;
    text << std::hex << std::setw(16) << std::setfill('0') << digest;
    return text.str();
}

/// Of each template, its line as it should be in revisions.txt.
std::map<std::string, std::string> lines_of_variants() {
    std::map<std::string, std::string> lines;
    for (int kind = 0; kind < kProgramKinds; ++kind) {
        for (const Backend backend : {Backend::kCpu, Backend::kCuda}) {
            for (const Variant& variant : variants(static_cast<ProgramKind>(kind), backend)) {
                const std::string path(variant.template_path);
                lines[path] = path + " " + std::to_string(variant.revision) + " " + digest_of(path);
            }
        }
    }
    return lines;
}

std::map<std::string, std::string> recorded_lines() {
    std::map<std::string, std::string> lines;
    std::ifstream file(KVJIT_REVISIONS);
    for (std::string line; std::getline(file, line);) {
        if (!line.empty() && line.front() != '#') lines[line.substr(0, line.find(' '))] = line;
    }
    return lines;
}

}  // namespace

TEST_CASE("a template that changes is looked at: are its results or arguments others, its revision rises") {
    const auto recorded = recorded_lines();
    for (const auto& [path, line] : lines_of_variants()) {
        const auto it = recorded.find(path);
        const bool same = it != recorded.end() && it->second == line;
        CHECK_MESSAGE(same, "templates/", path, " or what it includes has changed. Where results or arguments change, ",
                      "raise its revision in generator/src/variant.cc. Then this is its line in ", KVJIT_REVISIONS,
                      ":\n", line);
    }
    CHECK(recorded.size() == lines_of_variants().size());
}

TEST_CASE("a digest sees code, and neither comments nor indentation") {
    std::set<std::string> digests;
    for (const auto& [path, line] : lines_of_variants()) digests.insert(line.substr(line.rfind(' ')));
    CHECK(digests.size() == lines_of_variants().size());
    std::string code;
    std::set<std::string> seen;
    visit("cuda/attend_decode_mma.cu", seen, [&](std::string_view piece) { code += piece; });
    CHECK(code.contains("attend_block"));
    CHECK(!code.contains("bound by reading"));
    CHECK(seen.contains("common/score.h"));
    CHECK(seen.contains("cuda/primitives_ptx.h"));
}

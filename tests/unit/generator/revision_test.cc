// A program's revision is part of its identity, so that a store of older kernels never answers for mended ones. Here
// each template is tied to its revision by a digest of its text, comments and blanks left out, and all else that
// results follow from is recorded beside them: nobody changes the one and forgets the other.
#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <iomanip>
#include <map>
#include <set>
#include <span>
#include <sstream>

#include "cpu/clang/flags.h"
#include "cuda/nvrtc_flags.h"
#include "emulation/flags.h"
#include "generator/program.h"
#include "generator/render.h"

using namespace kvjit::gen;

namespace {

/// Feeds a template and what it includes, each file once, to `take`. A GPU's kernels see the primitives in PTX, a CPU's
/// AMX's own instructions.
void visit(std::string path, std::set<std::string>& seen, const std::function<void(std::string_view)>& take) {
    if (path == "common/spec_block.h") return;  // its constants are in the identity
    if (path == "cuda/machine/contract.h") path = "cuda/machine/ptx.h";
    if (path == "cuda/machine/warpgroup/contract.h") path = "cuda/machine/warpgroup/ptx.h";
    if (path == "cpu/machine/tiles/contract.h") path = "cpu/machine/tiles/amx.h";
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
class Digest {
public:
    void add(std::string_view text) {
        for (const char c : text) {
            if (c != ' ') digest_ = (digest_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
        }
    }

    std::string text() const {
        std::ostringstream text;
        text << std::hex << std::setw(16) << std::setfill('0') << digest_;
        return text.str();
    }

private:
    std::uint64_t digest_ = 0xcbf29ce484222325;
};

std::string digest_of_file(std::string_view path) {
    Digest digest;
    std::set<std::string> seen;
    visit(std::string(path), seen, [&](std::string_view code) { digest.add(code); });
    return digest.text();
}

/// Each in a line of its own: one word more isn't two.
std::string digest_of_list(std::span<const char* const> words, std::string_view last = {}) {
    Digest digest;
    for (const char* word : words) digest.add(std::string(word) + "\n");
    digest.add(last);
    return digest.text();
}

void add_constants(Digest& digest, const Target& target) {
    for (const Constant& constant : target_constants(target)) {
        digest.add(constant.type + "\n" + constant.name + "\n" + constant.value + "\n");
    }
}

/// What target_constants makes of targets that differ in it. A new architecture or level changes nothing here.
std::string digest_of_target_constants() {
    Digest digest;
    for (const char* name : {"x86-64", "x86-64-v2", "x86-64-v2+avx+f16c", "x86-64-v2+avx+fma", "x86-64-v3", "x86-64-v4",
                             "x86-64-v4+avx512vnni", "x86-64-v4-amx", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90",
                             "sm_90a", "sm_100", "sm_103a", "sm_120"}) {
        add_constants(digest, *named_target(name));
    }
    add_constants(digest, emulated_target(*named_target("x86-64-v4")));
    return digest.text();
}

/// What programs' results follow from, though neither a template's text nor an identity has it.
struct Basis {
    std::string name, digest;
    std::string_view whose;  // programs
};

std::vector<Basis> bases() {
    using kvjit::rt::kClangFlags, kvjit::rt::kClangPasses, kvjit::rt::kNvrtcFlags;
    using kvjit::rt::kEmulationFlags, kvjit::rt::kEmulationPasses;
    return {
        {"target_constants", digest_of_target_constants(), "of the targets that have other constants"},
        {"clang_flags_and_passes", digest_of_list(kClangFlags, kClangPasses), "of CPUs"},
        {"nvrtc_flags", digest_of_list(kNvrtcFlags), "of CUDA"},
        {"emulation_flags_and_passes", digest_of_list(kEmulationFlags, kEmulationPasses),
         "of CUDA, which are those of emulated ones"},
        {"cuda/machine/emulated.h", digest_of_file("cuda/machine/emulated.h"),
         "of CUDA, which are those of emulated ones"},
        {"cuda/machine/warpgroup/emulated.h", digest_of_file("cuda/machine/warpgroup/emulated.h"),
         "of warpgroups, which are those of emulated ones"},
        {"cpu/machine/tiles/emulated.h", digest_of_file("cpu/machine/tiles/emulated.h"),
         "of AMX, which are those of emulated ones"},
    };
}

/// Of each template, its line as it should be in revisions.txt.
std::map<std::string, std::string> lines_of_variants() {
    std::map<std::string, std::string> lines;
    for (const ProgramInfo& info : programs()) {
        for (const Backend backend : {Backend::kCpu, Backend::kCuda}) {
            for (const Variant& variant : info.use(backend).variants) {
                const std::string path(variant.template_path);
                lines[path] = path + " " + std::to_string(variant.revision) + " " + digest_of_file(path);
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
                      "raise its revision in generator/src/program_table.cc. Then this is its line in ",
                      KVJIT_REVISIONS, ":\n", line);
    }
    CHECK(recorded.size() == lines_of_variants().size() + bases().size());
}

TEST_CASE("so is all else that results follow from") {
    const auto recorded = recorded_lines();
    for (const Basis& basis : bases()) {
        const std::string line = basis.name + " - " + basis.digest;
        const auto it = recorded.find(basis.name);
        const bool same = it != recorded.end() && it->second == line;
        CHECK_MESSAGE(
            same, basis.name, " changed. Where results change by it, raise, in generator/src/program_table.cc, the ",
            "revisions of the programs ", basis.whose, ". Then this is its line in ", KVJIT_REVISIONS, ":\n", line);
    }
}

TEST_CASE("a digest of a list sees each word, its order and what follows") {
    const char* const two[] = {"-x", "c++"};
    const char* const one[] = {"-xc++"};
    const char* const turned[] = {"c++", "-x"};
    const std::set<std::string> digests = {digest_of_list(two),        digest_of_list(one),
                                           digest_of_list(turned),     digest_of_list(two, "sroa"),
                                           digest_of_list({}, "sroa"), digest_of_list({})};
    CHECK(digests.size() == 6);
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
    CHECK(seen.contains("cuda/machine/ptx.h"));
    CHECK(digest_of_file("cuda/machine/emulated.h") != digest_of_file("cuda/machine/ptx.h"));
}

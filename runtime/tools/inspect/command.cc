// `kvjit inspect` on the command line.
#include <algorithm>
#include <memory>

#include "command/options.h"
#include "commands.h"
#include "inspect/diff.h"
#include "inspect/fields_help.h"
#include "inspect/output.h"
#include "inspect/programs.h"
#include "inspect/show.h"
#include "inspect/stages.h"
#include "inspect/summary.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Request : InspectOptions {
    std::vector<std::string> words;   // of the spec
    std::vector<std::string> diffed;  // two specs, texts or files, or none
};

std::vector<std::string> names_of_programs() {
    std::vector<std::string> names;
    for (const auto& [name, bit] : program_names()) names.push_back(name);
    return names;
}

/// Identities and files call two programs by longer names: "attend_decode".
std::string program_of_code(const std::string& name) {
    constexpr std::string_view kLonger = "attend_";
    return name.starts_with(kLonger) ? name.substr(kLonger.size()) : name;
}

/// --diff takes the place of a spec.
CLI::Option* add_diff(Options& options, Request& request) {
    CLI::Option* diff = options.text(
        "--diff", request.diffed, {"BEFORE AFTER", Offer::kFiles},
        "Show what differs between the kernels BEFORE and AFTER: specs, texts that --emit identity printed, files that "
        "have them, or - for standard input");
    diff->expected(2);
    options.check([&request]() -> Result<void> {
        if (request.words.empty() && request.diffed.empty()) return fail("SPEC or --diff is missing");
        return {};
    });
    return diff;
}

/// Styles of assembly are for assembly, and a JSON text is one file: seen before anything is compiled.
Result<void> check_output(const Request& request) {
    if (request.json && request.output && names_folder(*request.output)) {
        return fail(escaped(*request.output) + " is a folder, and --json writes one file: -o FILE");
    }
    const bool has_assembly = std::ranges::find(request.stages, "asm") != request.stages.end();
    if (has_assembly || !(request.lines || request.raw)) return {};
    return fail(std::string(request.lines ? "--lines" : "--raw") + " is for --emit asm");
}

Result<int> run(Request& request) {
    if (!request.diffed.empty()) return diff(request.diffed[0], request.diffed[1], request);
    if (request.stages.empty() && !request.images) request.stages = {stage_names().front()};
    for (const std::string& word : request.words) request.spec += word + " ";
    return inspect(request);
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    CLI::Option* spec = options.text("SPEC", request->words, kSpec, "field=value pairs, see below");
    options.target(request->target);
    CLI::Option* stage = options.choices("--emit", request->stages, stage_names(),
                                         "What to show, one or several with commas; summary if nothing else is said. "
                                         "ir, ir-unoptimised: of CPUs; ptx, sass, "
                                         "cubin: of CUDA, where asm is ptx and object is cubin");
    CLI::Option* why =
        options.flag("--why", request->why,
                     "Show which algorithm serves each program on the target, and what those before it can't do");
    CLI::Option* images = options.flag("--images", request->images,
                                       "Show what is run for each program and where that is from: a bundle, the disk "
                                       "cache, or none, then it would be compiled");
    options.choice("--program", request->program, names_of_programs(), "This program only (check: of CUDA), or all")
        ->transform(program_of_code);
    CLI::Option* bundle = options.bundles(request->bundles);
    CLI::Option* output =
        options.text("-o,--output", request->output, {"FILE|FOLDER", Offer::kFiles},
                     "Write to this file instead of standard output; of several stages, or with a slash "
                     "at its end, it is a folder, which gets a file for each program and stage");
    CLI::Option* json = options.json(request->json);
    CLI::Option* lines =
        options.flag("--lines", request->lines, "asm of CPUs: the source's lines in front of their instructions");
    CLI::Option* raw =
        options.flag("--raw", request->raw, "asm of CPUs: with directives and data, as an assembler takes it");
    why->excludes(stage)->excludes(json);
    images->excludes(stage)->excludes(why);
    raw->excludes(lines);
    options.check([&request = *request] { return check_output(request); });
    CLI::Option* diff = add_diff(options, *request);
    for (CLI::Option* other : {spec, stage, why, images, bundle, output, json, lines, raw}) diff->excludes(other);
    return [request] { return run(*request); };
}

}  // namespace

constinit const Command kInspectCommand = {
    .name = "inspect",
    .summary = "Show what a spec becomes: summary, source, IR, assembly, object, the compiler's report",
    .declare = declare,
    .about = kInspectAbout,
    .more = spec_fields_help,
    .examples =
        "kvjit inspect head_dim=128 group=4\n"
        "kvjit inspect head_dim=64 quant_bit=8 layout=L2HTD --emit source --program store\n"
        "kvjit inspect op=MultiHeadAttention,head_dim=128,t1=f32 --target x86-64-v3 --emit asm --lines --program "
        "prefill\n"
        "kvjit inspect head_dim=128 group=4 cache_mode=page_table --target sm_90a --emit summary,ptx,cubin -o folder\n"
        "kvjit inspect head_dim=128 group=4 t1=f32 --target sm_90a --why\n"
        "kvjit inspect head_dim=128 group=4 --target sm_90a --bundle kernels.kvjb --images\n"
        "kvjit inspect head_dim=128 group=4 --bundle kernels.kvjb --program decode --emit object -o decode.o\n"
        "kvjit inspect --diff head_dim=128,group=4 head_dim=128,group=8\n"
        "kvjit inspect head_dim=128 group=4 --emit identity > old.txt    and after an update, in bash:\n"
        "kvjit inspect --diff old.txt <(kvjit inspect head_dim=128 group=4 --emit identity)\n"};

}  // namespace kvjit::tool

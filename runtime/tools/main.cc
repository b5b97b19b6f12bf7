// The `kvjit` command.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/command.h"
#include "bundle/files.h"
#include "diff.h"
#include "inspect.h"
#include "kvjit/kvjit.h"
#include "replay.h"
#include "result.h"
#include "safetensors.h"
#include "spec.h"
#include "targets.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

const std::map<std::string, kvjit_op> kOps = {{"MultiHeadCacheAttention", KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION},
                                              {"KeyValueCache", KVJIT_OP_KEY_VALUE_CACHE},
                                              {"MultiHeadAttention", KVJIT_OP_MULTI_HEAD_ATTENTION}};
const std::map<std::string, kvjit_stage> kStages = {
    {"identity", KVJIT_STAGE_IDENTITY}, {"source", KVJIT_STAGE_SOURCE}, {"ir", KVJIT_STAGE_IR},
    {"asm", KVJIT_STAGE_ASM},           {"log", KVJIT_STAGE_LOG},       {"object", KVJIT_STAGE_OBJECT}};

constexpr const char* kTargetHelp =
    "host, x86-64, -v2, -v3, -v4, -v4-vnni, -v4-bf16, -v4-fp16 or -v4-amx, also with features (x86-64-v3+avxvnni), "
    "cuda, cuda:N, "
    "sm_80, sm_90a, ... or cuda-emulated";

constexpr const char* kMainFooter =
    "Examples:\n"
    "  kvjit replay call.safetensors\n"
    "  kvjit inspect op=MultiHeadCacheAttention,head_dim=128,group=4 --emit source --program decode\n"
    "  kvjit bundle create kernels.kvjb --specs specs.txt --targets x86-64-v3,sm_80\n"
    "  kvjit help inspect              the fields of a spec\n"
    "Exit status: 0 all well, 1 a replayed result or a bundle was wrong, 2 bad arguments, files, target or output.";

constexpr const char* kReplayFooter =
    "Each FILE is one recorded MultiHeadCacheAttention call in the safetensors format (docs/semantics.md, section 9).\n"
    "It is replayed as all three operators. Cache, scale, key and value must be equal in every bit; attn_output and\n"
    "lse within 1e-5 of the largest expected value for f32, 2e-3 for f16, 1.6e-2 for bf16.\n"
    "Examples:\n"
    "  kvjit replay tests/golden/pmx/*.safetensors\n"
    "  kvjit replay --op KeyValueCache --target x86-64-v3 --threads 1 call.safetensors\n"
    "Exit status: 0 all passed, 1 some result was wrong, 2 something could not be used.";

const std::string kInspectExamples =
    "Examples:\n"
    "  kvjit inspect head_dim=64 quant_bit=8 layout=L2HTD --emit source --program store\n"
    "  kvjit inspect op=MultiHeadAttention,head_dim=128,t1=f32 --target x86-64-v3 --emit asm --program prefill\n"
    "  kvjit inspect head_dim=128 group=4 cache_mode=page_table --target sm_90a --emit log --program decode\n"
    "  kvjit inspect head_dim=128 group=4 t1=f32 --target sm_90a --why\n"
    "  kvjit inspect head_dim=128 group=4 --target sm_90a --bundle kernels.kvjb --images\n"
    "  kvjit inspect head_dim=128 group=4 --bundle kernels.kvjb --program decode --emit object -o decode.o\n"
    "  kvjit inspect head_dim=128 group=4 > old.txt    and after an update, in bash:\n"
    "  kvjit inspect --diff old.txt <(kvjit inspect head_dim=128 group=4)\n";

/// The parsed command line.
struct Request {
    ReplayOptions replay;
    InspectOptions inspect;
    TargetsOptions targets;
    SpecListOptions spec_list;
    std::string listed;  // what `spec list` lists
    std::vector<std::string> spec_words;
    std::vector<std::string> diffed;  // two texts or files, or none
    std::string op = "all";
    std::string stage = "identity";
    std::optional<std::string> output;
};

template <class Value>
std::vector<std::string> names_of(const std::map<std::string, Value>& values) {
    std::vector<std::string> names;
    for (const auto& [name, value] : values) names.push_back(name);
    return names;
}

/// Identities and files call two programs by longer names: "attend_decode".
std::string program_of_code(const std::string& name) {
    constexpr std::string_view kLonger = "attend_";
    return name.starts_with(kLonger) ? name.substr(kLonger.size()) : name;
}

CLI::App* add_replay(CLI::App& app, Request& request) {
    CLI::App* command = app.add_subcommand("replay", "Run recorded calls and compare the results");
    ReplayOptions& options = request.replay;
    command->add_option("FILE", options.files, "Recorded calls (*.safetensors)")->required();
    command->add_option("--target", options.target, kTargetHelp)->capture_default_str();
    command->add_option("--cache-dir", options.cache_dir, "Folder of compiled kernels; '' for none");
    command
        ->add_option("--threads", options.num_threads,
                     "Threads that work on a call; 0, or more than there are: one for each usable core")
        ->check(CLI::Range(0, 1024))
        ->capture_default_str();
    command->add_option("--op", request.op, "Only this operator: " + CLI::detail::generate_map(kOps, true) + " or all")
        ->check(CLI::IsMember(kOps) | CLI::IsMember({"all"}))
        ->capture_default_str();
    command->add_flag("--quiet,-q", options.quiet, "Print failures and the summary only");
    command->footer(kReplayFooter);
    return command;
}

/// Adds --diff, which takes the place of a spec.
void add_diff(CLI::App& inspect, Request& request) {
    CLI::Option* diff = inspect.add_option(
        "--diff", request.diffed,
        "Show what differs between the identities BEFORE and AFTER: texts that --emit identity printed, files that "
        "have them, or - for standard input");
    diff->type_name("BEFORE AFTER")->expected(2);
    for (const char* other : {"SPEC", "--target", "--emit", "--why", "--images", "--program", "--bundle", "--output"}) {
        diff->excludes(other);
    }
    inspect.parse_complete_callback([&request] {
        if (request.spec_words.empty() && request.diffed.empty()) throw CLI::RequiredError("SPEC or --diff");
    });
}

CLI::App* add_inspect(CLI::App& app, Request& request) {
    CLI::App* command = app.add_subcommand(
        "inspect", "Show what a spec becomes: identity, source, IR, assembly, object or the compiler's report");
    InspectOptions& options = request.inspect;
    command->add_option("SPEC", request.spec_words, "field=value pairs, see below");
    command->add_option("--target", options.target, kTargetHelp)->capture_default_str();
    command
        ->add_option("--emit", request.stage,
                     "identity, source, ir, asm (PTX for CUDA), log (the compiler's; for CUDA registers and spills) or "
                     "object (ELF or cubin, of one program)")
        ->check(CLI::IsMember(names_of(kStages)))
        ->capture_default_str();
    command
        ->add_flag("--why", options.why,
                   "Show which algorithm serves each program on the target, and what those before it can't do")
        ->excludes("--emit");
    command
        ->add_flag("--images", options.images,
                   "Show what is run for each program and where that is from: a bundle, the disk cache, or none, then "
                   "it would be compiled")
        ->excludes("--emit", "--why");
    command->add_option("--program", options.program, "this program only (check: of CUDA), or all")
        ->check(CLI::IsMember(names_of(program_names())))
        ->transform(program_of_code)
        ->capture_default_str();
    command->add_option("--bundle", options.bundles, "A bundle that is asked first, as engines ask it; may be repeated")
        ->type_name("FILE")
        ->allow_extra_args(false);
    command->add_option("--output,-o", request.output, "Write to this file instead of standard output")
        ->type_name("FILE");
    add_diff(*command, request);
    command->footer([] { return spec_fields_help() + kInspectExamples; });
    return command;
}

CLI::App* add_targets(CLI::App& app, Request& request) {
    CLI::App* command = app.add_subcommand("targets", "List the targets that kernels can be made for");
    command->add_flag("--names", request.targets.names, "Names alone, a line each");
    command->footer(
        "CPU levels also take further features: x86-64-v3+avxvnni. Architectures that only an installed NVRTC knows "
        "are\n"
        "not in the list.\n"
        "Examples:\n"
        "  kvjit targets\n"
        "  kvjit targets --names | grep sm_");
    return command;
}

CLI::App* add_spec(CLI::App& app, Request& request) {
    CLI::App* command = app.add_subcommand("spec", "Show what fields of a spec take");
    command->require_subcommand(1);
    CLI::App* list = command->add_subcommand("list", "List the names of something, and what they mean");
    list->add_option("WHAT", request.listed, "layouts: what engines and libraries call the layouts of their caches")
        ->check(CLI::IsMember({"layouts"}))
        ->required();
    list->add_flag("--names", request.spec_list.names, "Names alone, a line each");
    for (CLI::App* each : {command, list}) {
        each->footer(
            "A layout's name stands for an order of axes (N block, T token, L layer, 2 key or value, H kv head, D "
            "element)\n"
            "and sets further fields, which may not be given otherwise: docs/layouts.md.\n"
            "Examples:\n"
            "  kvjit spec list layouts\n"
            "  kvjit spec list layouts --names | grep vllm\n"
            "  kvjit inspect layout=vllm:LBNHC,page_size=16,head_dim=128");
    }
    return command;
}

void finish(Request& request) {
    request.inspect.stage = kStages.at(request.stage);
    if (request.output) {
        request.inspect.write = [path = *request.output](std::string_view bytes) { return write_file(path, bytes); };
    }
    for (const std::string& word : request.spec_words) request.inspect.spec += word + " ";
    for (const auto op :
         {KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION, KVJIT_OP_KEY_VALUE_CACHE, KVJIT_OP_MULTI_HEAD_ATTENTION}) {
        if (request.op == "all" || kOps.at(request.op) == op) request.replay.ops.push_back(op);
    }
}

/// In reverse order, which CLI11 expects. `help` and `help COMMAND` become `--help` and `COMMAND --help`.
std::vector<std::string> reversed_arguments(int argc, char** argv) {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    if (!arguments.empty() && arguments.front() == "help") {
        arguments.erase(arguments.begin());
        arguments.emplace_back("--help");
    }
    return {arguments.rbegin(), arguments.rend()};
}

/// The error names the word in place of a command. CLI11 would not name it, and would accept `foo --help`.
Result<void> check_command(std::span<char* const> arguments) {
    const std::vector<std::string> words(arguments.begin(), arguments.end());
    const auto is_one_of = [](std::initializer_list<std::string_view> names, const std::string& word) {
        return std::ranges::find(names, word) != names.end();
    };
    const std::string takes = ", expected one of: replay, inspect, bundle, spec, targets, help; kvjit help says more";
    if (words.empty()) return fail("a command is missing" + takes);
    if (!is_one_of({"replay", "inspect", "bundle", "spec", "targets", "help", "--help", "-h", "--version"}, words[0])) {
        return fail(in_quotes(words[0]) + " is no command" + takes);
    }
    if (words[0] == "bundle") return check_bundle_command(std::span(words).subspan(1));
    if (words[0] != "help" || words.size() == 1) return {};
    if (!is_one_of({"replay", "inspect", "bundle", "spec", "targets", "help", "--help", "-h"}, words[1])) {
        return fail(in_quotes(words[1]) + " is no command" + takes);
    }
    if (words.size() > 2) return fail(in_quotes(words[2]) + " is one word too many after help " + words[1]);
    return {};
}

/// Prints CLI11's help or error, which repeats what the user wrote. Returns the exit status.
int show(const CLI::App& app, const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = app.exit(error, out, err);
    print(out.str());
    std::fputs(escaped_lines(err.str()).c_str(), stderr);
    return code == 0 ? kExitOk : kExitBadInput;
}

int run(int argc, char** argv) {
    if (auto checked = check_command({argv + 1, argv + argc}); !checked) {
        complain(checked.error());
        return kExitBadInput;
    }
    CLI::App app("kvjit: attention and KV-cache kernels, specialised for one configuration.", "kvjit");
    app.set_version_flag("--version", std::string("kvjit ") + kvjit_version());
    app.require_subcommand(1);
    app.footer(kMainFooter);
    Request request;
    const CLI::App* replaying = add_replay(app, request);
    const CLI::App* inspecting = add_inspect(app, request);
    const BundleCommand bundle(app);
    const CLI::App* explaining = add_spec(app, request);
    const CLI::App* listing = add_targets(app, request);
    try {
        app.parse(reversed_arguments(argc, argv));
    } catch (const CLI::ParseError& error) {
        return show(app, error);
    }
    finish(request);
    if (replaying->parsed()) return replay(request.replay);
    if (bundle.parsed()) return bundle.run();
    if (listing->parsed()) return targets(request.targets);
    if (explaining->parsed()) return list_layouts(request.spec_list);
    if (!inspecting->parsed()) return kExitBadInput;
    return request.diffed.empty() ? inspect(request.inspect) : diff(request.diffed[0], request.diffed[1]);
}

}  // namespace
}  // namespace kvjit::tool

int main(int argc, char** argv) {
    using namespace kvjit::tool;
    prepare_standard_streams();
    int code = kExitBadInput;
    try {
        code = run(argc, argv);
    } catch (const std::exception& error) {
        complain(std::string("stopped: ") + error.what());
    }
    return output_is_good() ? code : kExitBadInput;
}

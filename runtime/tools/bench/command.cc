// `kvjit bench` on the command line.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/device.h"
#include "bench/measure.h"
#include "bench/report.h"
#include "bench/workload.h"
#include "command/options.h"
#include "commands.h"
#include "environment.h"
#include "generator/spec.h"
#include "handles.h"
#include "inspect/fields_help.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Request {
    std::vector<std::string> words, batches;
    std::string target = "host";
    std::string against;  // a folder of templates
    KernelSources sources;
    int threads = 0;
    std::int64_t kv_heads = 8, layers = 0;
    double seconds = 1;
    bool json = false;

    bool is_recorded() const { return std::ranges::all_of(words, is_file); }

    static bool is_file(const std::string& word) { return word.ends_with(".safetensors"); }
};

/// Either kind of what is measured.
Result<void> check_words(const std::vector<std::string>& words) {
    const auto file = std::ranges::find_if(words, Request::is_file);
    const auto field = std::ranges::find_if_not(words, Request::is_file);
    if (file == words.end() || field == words.end()) return {};
    return fail(in_quotes(*file) + " is a recorded call, and " + in_quotes(*field) +
                " a part of a spec: measure them one after the other");
}

/// What makes the kernels other ones than a user's, so that nobody takes their times for these.
std::string remarks_on_kernels() {
    std::string text;
    const std::string debug = rt::environment_text(rt::Variable::kDebug).value_or("");
    if (debug == "1") text += "KVJIT_DEBUG=1: the kernels of CPUs are not optimised.\n";
    if (debug == "frames") text += "KVJIT_DEBUG=frames: the kernels of CPUs keep frame pointers.\n";
    const std::string templates = rt::environment_text(rt::Variable::kTemplateDir).value_or("");
    if (!templates.empty())
        text += "KVJIT_TEMPLATE_DIR=" + escaped(templates) + ": kernels are made of its templates.\n";
    return text;
}

/// Measures one workload after another, each with an engine of its own.
class Bench {
public:
    Bench(const Request& request, const kvjit_target* target, Device& device)
        : request_(request), target_(target), device_(device), progress_(static_cast<std::int64_t>(names().size())) {}

    Result<BenchReport> run() {
        BenchReport report{.device = device_.name(),
                           .target = request_.target,
                           .against = request_.against,
                           .notes = device_.notes() + remarks_on_kernels(),
                           .rows = {}};
        for (const std::string& name : names()) {
            auto row = measure_one(name);
            if (!row) return fail(row.error());
            report.rows.push_back(*std::move(row));
            progress_.advance(name);
        }
        return report;
    }

private:
    /// What is measured: recorded calls, or batches of the spec.
    const std::vector<std::string>& names() const {
        if (request_.is_recorded()) return request_.words;
        return request_.batches.empty() ? kUsualBatches : request_.batches;
    }

    Result<std::unique_ptr<Workload>> open(const Setting& setting, const std::string& name) const {
        if (request_.is_recorded()) return recorded_workload(setting.machine, name);
        std::string text;
        for (const std::string& word : request_.words) text += word + " ";
        const auto spec = parse_spec(text);
        if (!spec) return fail(spec.error());
        return made_up_workload(setting, *spec, name, {request_.kv_heads, request_.layers});
    }
    /// What the device's memory throws becomes the error.
    Result<std::unique_ptr<Workload>> try_open(const Setting& setting, const std::string& name) const {
        try {
            return open(setting, name);
        } catch (const std::runtime_error& refused) {
            return fail(name + ": " + refused.what());
        }
    }

    /// Null: there is none. Bundles have kernels of one's own templates.
    Result<Engine> open_rival() const {
        if (request_.against.empty()) return Engine();
        return open_engine({request_.sources.cache_dir, {}, request_.against});
    }

    Result<BenchRow> measure_one(const std::string& name) {
        const auto engine = open_engine(request_.sources, true);
        if (!engine) return fail(engine.error());
        const auto memory = device_.memory();
        const Machine machine = device_.machine(engine->get(), target_, *memory);
        auto opened = try_open({device_, *memory, machine}, name);
        if (!opened) return fail(opened.error());
        Workload& workload = **opened;
        const auto rival = open_rival();
        if (!rival) return fail(rival.error());
        if (*rival) {
            auto added = workload.add_engine(device_.machine(rival->get(), target_, *memory));
            if (!added) return fail(added.error());
        }
        auto measured = measure(workload, engine->get(), device_, request_.seconds, *rival != nullptr);
        if (!measured) return fail(measured.error());
        return BenchRow{
            workload.spec, workload.batch, workload.layers, workload.new_tokens, device_.arithmetic(workload.t1),
            *measured};
    }

    const Request& request_;
    const kvjit_target* target_;
    Device& device_;
    Progress progress_;
};

Result<std::unique_ptr<Device>> open_device(const Request& request) {
    if (!is_cuda(request.target)) return cpu_device(request.threads);
    if (request.threads != 0) return fail("--threads is given, and --target is " + request.target + ", no CPU");
    return gpu_device(request.target);
}

Result<int> bench(const Request& request) {
    const auto target = open_target(request.target);
    if (!target) return fail(target.error());
    const auto device = open_device(request);
    if (!device) return fail(device.error());
    const auto report = Bench(request, target->get(), **device).run();
    if (!report) return fail(report.error());
    print(request.json ? dump(bench_json(*report)) : escaped_lines(bench_text(*report)));
    return kExitOk;
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("SPEC", request->words, kSpec, "field=value pairs, or recorded calls (*.safetensors)")->required();
    CLI::Option* batch =
        options.text("--batch", request->batches, {"BATCH"},
                     "Sequences, their new tokens and their keys, as 8x1:4096; + joins groups of them; "
                     "may be repeated");
    options.target(request->target);
    options.cache_folder(request->sources.cache_dir);
    options.bundles(request->sources.bundles);
    options.number("--threads", request->threads, 0, 1024,
                   "Threads of a CPU; 0, or more than there are: one for each usable core");
    CLI::Option* heads = options.number("--kv-heads", request->kv_heads, 1, 1024, "Heads of keys and values");
    CLI::Option* layers =
        options.number("--layers", request->layers, 0, 1024,
                       "Layers that a pass runs on; 0: so many that the last-level cache can't keep them");
    options.text("--against", request->against, {"FOLDER"},
                 "Templates whose kernels run the same calls in turns, over the same memory: shows a call's time over "
                 "theirs");
    options.text("--seconds", request->seconds, {"SECONDS"},
                 "How long a batch is measured, up to 3600; five rounds at least, and with 0 no more [1]");
    options.json(request->json);
    options.check([&request = *request, batch, heads, layers]() -> Result<void> {
        if (!(request.seconds >= 0 && request.seconds <= 3600)) return fail("--seconds takes a number from 0 to 3600");
        if (auto checked = check_words(request.words); !checked) return checked;
        if (!request.is_recorded()) return {};
        for (const CLI::Option* option : {batch, heads, layers}) {
            if (option->count() != 0) return fail(option->get_name() + " is given, and a recorded call has its own");
        }
        return {};
    });
    return [request] { return bench(*request); };
}

}  // namespace

constinit const Command kBenchCommand = {
    .name = "bench",
    .summary = "Measure a spec, or recorded calls, beside the machine's limits",
    .declare = declare,
    .about =
        "Runs calls with made-up data, or recorded ones, on the CPU or on a GPU (--target cuda). Passes over several "
        "layers, so that keys and values come from memory as a model's do (--layers 1: from the cache, where they "
        "fit), "
        "take turns with a loop that only reads memory and one that only multiplies and adds in registers. On CPUs "
        "that "
        "is float32's; on GPUs float32's for queries of float32, for others products of float16 in tensor cores. Bytes "
        "are those of the tensors and of the keys and values that are seen or stored, each once; operations, of scores "
        "and weighted values alone. On CPUs AMX's and bfloat16's products are faster than the second loop: shares "
        "above 100% are theirs, or those of caches.\n"
        "\n"
        "With --against both kernels take turns in one process: what the machine does meanwhile favours neither, so "
        "that a change of the templates shows which is far smaller than what times differ by from minute to minute.\n"
        "\n"
        "On a GPU everything lies in its memory. Calls are captured into a graph, so that launches are back to back, "
        "and "
        "timed between two events. Clocks are as they are: shares tell more than times.\n"
        "\n"
        "BATCH is SEQUENCESxTOKENS:KEYS: 8x1:4096 is eight sequences that decode one token each, the last of 4096 "
        "keys; 1x512:512 a prompt; 16x1:2048+1x512:512 both at once. The default is four such batches.",
    .more = call_fields_help,
    .examples =
        "kvjit bench head_dim=128 group=4 quant_bit=8\n"
        "kvjit bench head_dim=128,group=4,cache_mode=page_table,page_size=16 --batch 64x1:512 --batch 1x2048:2048\n"
        "kvjit bench head_dim=128,group=4,t1=f16 --target cuda\n"
        "kvjit bench /tmp/calls/*.safetensors\n"
        "KVJIT_TEMPLATE_DIR=edited kvjit bench head_dim=128 group=4 --against templates\n"
        "kvjit bench head_dim=128 group=4 --json > before.json    and later: kvjit compare before.json after.json\n"};

}  // namespace kvjit::tool

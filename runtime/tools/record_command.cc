// `kvjit record`: a made-up call as a recording.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/workload.h"
#include "bundle/files.h"
#include "command/options.h"
#include "commands.h"
#include "handles.h"
#include "input_file.h"
#include "inspect/fields_help.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnersMode = 0600;  // as all recordings have
constexpr const char* kMost = ":max_bytes=1099511627776";

struct Request {
    std::vector<std::string> words;
    std::string batch = "2x1:64+1x8:8", target = "host", output;
    KernelSources sources;
    int threads = 0;
    std::int64_t kv_heads = 2;
};

/// For the engine's file, which has a name of its own. Goes with its content.
class Folder {
public:
    static Result<Folder> make() {
        std::error_code error;
        std::string path = (fs::temp_directory_path(error) / "kvjit-record-XXXXXX").string();
        if (error || mkdtemp(path.data()) == nullptr) return fail(escaped(path) + " can't be created");
        return Folder(std::move(path));
    }
    Folder(Folder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    ~Folder() {
        std::error_code ignored;
        if (!path_.empty()) fs::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }

private:
    explicit Folder(std::string path) : path_(std::move(path)) {}

    std::string path_;
};

/// Runs the call on an engine that records to the folder. The spec's canonical text.
Result<std::string> run_call(const Request& request, const kvjit_spec& spec, const std::string& folder) {
    const auto target = open_target(request.target);
    if (!target) return fail(target.error());
    const auto engine = open_engine(request.sources, false, folder + kMost);
    if (!engine) return fail(engine.error());
    const auto device = cpu_device(request.threads);
    const auto memory = device->memory();
    Machine machine = device->machine(engine->get(), target->get(), *memory);
    machine.on_cuda = is_cuda(request.target);
    const auto call =
        made_up_workload({*device, *memory, machine}, spec, request.batch, {.kv_heads = request.kv_heads, .layers = 1});
    if (!call) return fail(call.error());
    if (auto ran = (*call)->start(0, 0); !ran) return fail(ran.error());
    if (auto done = (*call)->finish(); !done) return fail(done.error());
    return (*call)->spec;
}

Result<std::string> only_file(const std::string& folder) {
    std::error_code error;
    const fs::directory_iterator file(folder, error);
    if (error || file == fs::directory_iterator()) return fail("the call ran, and could not be recorded");
    return read_file(file->path().string(), SIZE_MAX);
}

Result<int> record(const Request& request) {
    std::string text;
    for (const std::string& word : request.words) text += word + " ";
    const auto spec = parse_spec(text);
    if (!spec) return fail(spec.error());
    const auto folder = Folder::make();
    if (!folder) return fail(folder.error());
    const auto ran = run_call(request, *spec, folder->path());
    if (!ran) return fail(ran.error());
    const auto bytes = only_file(folder->path());
    if (!bytes) return fail(bytes.error());
    if (auto written = write_file(request.output, *bytes, kOwnersMode); !written) return fail(written.error());
    print(escaped(request.output) + ": " + *ran + "; " + size_text(bytes->size()) + "\n");
    return kExitOk;
}

Result<void> check_target(const std::string& target) {
    if (!is_cuda(target) || target.starts_with("cuda-emulated")) return {};
    return fail("--target is " + target +
                ", a GPU; kvjit record runs on CPUs and on cuda-emulated, and its file replays on GPUs, too");
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("SPEC", request->words, kSpec, "field=value pairs")->required();
    options.text("-o,--output", request->output, kFile, "The file to be written")->required();
    options.text("--batch", request->batch, {"BATCH"},
                 "Sequences, their new tokens and their keys, as 8x1:4096; + joins groups of them");
    options.target(request->target);
    options.cache_folder(request->sources.cache_dir);
    options.bundles(request->sources.bundles);
    options.number("--threads", request->threads, 0, 1024,
                   "Threads that work on the call; 0, or more than there are: one for each usable core");
    options.number("--kv-heads", request->kv_heads, 1, 1024, "Heads of keys and values");
    options.check([&request = *request] { return check_target(request.target); });
    return [request] { return record(*request); };
}

}  // namespace

constinit const Command kRecordCommand = {
    .name = "record",
    .summary = "Write a made-up call of a spec as a recorded call",
    .declare = declare,
    .about =
        "Runs one call with made-up inputs, the same each time, and writes it with what it gave, as an engine "
        "with KVJIT_RECORD does (docs/recording.md): for kvjit replay and kvjit bench, on any target, without an "
        "application. BATCH is as kvjit bench takes it.",
    .more = call_fields_help,
    .examples =
        "kvjit record head_dim=128 group=4 quant_bit=8 -o call.safetensors\n"
        "kvjit record op=KeyValueCache,head_dim=64 --batch 1x512:512 -o store.safetensors\n"
        "kvjit replay --oracle --target cuda-emulated call.safetensors\n"};

}  // namespace kvjit::tool

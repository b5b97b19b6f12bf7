// `kvjit replay` on the command line.
#include <memory>

#include "command/options.h"
#include "commands.h"
#include "replay.h"

namespace kvjit::tool {
namespace {

struct Op {
    const char* name;
    kvjit_op op;
};
/// In the order in which they are replayed.
constexpr Op kOps[] = {{"MultiHeadCacheAttention", KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION},
                       {"KeyValueCache", KVJIT_OP_KEY_VALUE_CACHE},
                       {"MultiHeadAttention", KVJIT_OP_MULTI_HEAD_ATTENTION},
                       {"Merge", KVJIT_OP_MERGE}};

struct Request : ReplayOptions {
    std::string op = "all";
};

Result<void> check_output(const Request& request) {
    if (!request.output) return {};
    if (!request.oracle) return fail("--output needs --oracle, whose results it writes");
    if (request.files.size() == 1) return {};
    return fail("--output takes one FILE; there are " + std::to_string(request.files.size()));
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("FILE", request->files, kFile, "Recorded calls (*.safetensors)")->required();
    options.target(request->target);
    options.cache_folder(request->sources.cache_dir);
    options.bundles(request->sources.bundles);
    options.number("--threads", request->num_threads, 0, 1024,
                   "Threads that work on a call; 0, or more than there are: one for each usable core");
    std::vector<std::string> ops = {"all"};
    for (const Op& op : kOps) ops.emplace_back(op.name);
    options.choice("--op", request->op, ops, "Only this operator");
    options.flag("--oracle", request->oracle,
                 "Compute in float64 what a recording's call should give, and hold to that both this run and what was "
                 "recorded");
    options.text("-o,--output", request->output, kFile,
                 "With --oracle: write the only FILE, a recording, with what it should give, as out.*, to this file");
    options.flag("--bits", request->bits, "Recordings: attn_output and lse as recorded, to the last bit");
    options.flag("--quiet,-q", request->quiet, "Print failures and the summary only");
    options.check([&request = *request] { return check_output(request); });
    return [request] {
        for (const Op& op : kOps) {
            if (request->op == "all" || request->op == op.name) request->ops.push_back(op.op);
        }
        return Result<int>(replay(*request));
    };
}

}  // namespace

constinit const Command kReplayCommand = {
    .name = "replay",
    .summary = "Run recorded calls and compare the results",
    .declare = declare,
    .about =
        "Each FILE is one call in the safetensors format (docs/semantics.md, section 9): what KVJIT_RECORD wrote "
        "(docs/recording.md), which is held to what was recorded; or a MultiHeadCacheAttention call of a reference, "
        "which is replayed as all three operators. Cache, scale, key and value must be equal in every bit; "
        "attn_output and lse within 1e-5 of the largest expected value for f32, 2e-3 for f16, 1.6e-2 for bf16.",
    .examples =
        "KVJIT_RECORD=/tmp/calls:max_files=10 ./engine; kvjit replay --oracle /tmp/calls/*\n"
        "kvjit replay --target cuda-emulated --bits /tmp/calls/*\n"
        "kvjit replay --oracle -o expected.safetensors call.safetensors    then: kvjit replay expected.safetensors\n"
        "KVJIT_JIT=off kvjit replay --bundle kernels.kvjb --cache-dir '' /tmp/calls/*    with nothing but a bundle\n"
        "kvjit replay tests/golden/pmx/*.safetensors\n"
        "kvjit replay --op KeyValueCache --target x86-64-v3 --threads 1 call.safetensors\n",
    .status = "0 all passed, 1 some result was wrong, 2 something could not be used"};

}  // namespace kvjit::tool

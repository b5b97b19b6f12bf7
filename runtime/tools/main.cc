// The `kvjit` command: the list of its commands.
#include <exception>
#include <span>
#include <string>

#include "commands.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr const Command* kCommands[] = {&kReplayCommand,  &kRecordCommand, &kInspectCommand,    &kBenchCommand,
                                        &kCompareCommand, &kBundleCommand, &kCacheCommand,      &kSpecCommand,
                                        &kTargetsCommand, &kDoctorCommand, &kCompletionCommand, &kHelpCommand};

constexpr Command kRoot = {
    .name = "kvjit",
    .summary = "Attention and KV-cache kernels, specialised for one configuration",
    .commands = kCommands,
    .examples =
        "kvjit replay call.safetensors\n"
        "kvjit inspect op=MultiHeadCacheAttention,head_dim=128,group=4 --emit source --program decode\n"
        "kvjit bench head_dim=128 group=4 quant_bit=8\n"
        "kvjit bundle create kernels.kvjb --specs specs.txt --targets x86-64-v3,sm_80\n"
        "kvjit help inspect              the fields of a spec\n"
        "kvjit --version\n",
    .status =
        "0 all well, 1 a replayed result or a bundle was wrong, or a call slower than allowed, 2 bad arguments, files, "
        "target or output"};

}  // namespace
}  // namespace kvjit::tool

int main(int argc, char** argv) {
    using namespace kvjit::tool;
    prepare_standard_streams();
    int code = kExitBadInput;
    try {
        code = run_command(kRoot, std::span(argv, static_cast<std::size_t>(argc)).subspan(argc > 0 ? 1 : 0));
    } catch (const std::exception& error) {
        complain(std::string("stopped: ") + error.what());
    }
    return output_is_good() ? code : kExitBadInput;
}

// An engine's step loop on kvjit: `kvjit_demo --help`. step_runner.cc is where kvjit is used.
#include <cstdio>
#include <exception>
#include <string>

#include "engine_loop.h"
#include "machine.h"
#include "must.h"
#include "terminal.h"

namespace demo {
namespace {

/// Triple and processor, without the list of features.
std::string short_text(const kvjit::Target& target) {
    const std::string text = target.text();
    return text.substr(0, text.find(':', text.find(':') + 1));
}

void print_head(const Options& options, const Machine& machine, const kvjit::Target& target, std::int64_t layers) {
    std::printf("%s %s\n", bold("Machine").c_str(), machine.headline().c_str());
    std::printf("%s  %s\n", bold("Target").c_str(), short_text(target).c_str());
    std::printf("%s   Llama 3 8B's attention, %lld of its 32 layers, %lld MB of int8 cache\n", bold("Model").c_str(),
                static_cast<long long>(layers), static_cast<long long>(cache_bytes(options, layers) >> 20));
    if (layers < options.layers) std::printf("        (for %d layers there is too little memory)\n", options.layers);
    for (const kvjit_op op : {KVJIT_OP_KEY_VALUE_CACHE, KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION}) {
        std::printf("%s    %s\n", bold("Spec").c_str(), must(Shape::spec(op).text()).c_str());
    }
    std::printf("\n");
}

/// Ready for the first request. Prints what that took.
Kernels ready_kernels(const Options& options, const kvjit::Target& target, const TemporaryFolder& folder) {
    if (!options.bundle.empty()) {
        Kernels kernels = open_bundle(options.bundle, target);
        print_programs(prepare_each(kernels, options.place), options.place);
        return kernels;
    }
    const ProgramTimes cold = prepare_each(open_kernels(folder.path(), target), options.place);
    Kernels kernels = open_kernels(folder.path(), target);  // a new engine: as after a restart
    print_programs(cold, prepare_each(kernels, options.place), options.place);
    return kernels;
}

int run(const Options& options) {
    const kvjit::Target target = open_target(options);
    const std::unique_ptr<Machine> machine = open_machine(options);
    const std::int64_t layers = layers_that_fit(options, machine->memory());
    print_head(options, *machine, target, layers);

    const TemporaryFolder folder;
    Kernels kernels = ready_kernels(options, target, folder);
    kernels.engine.seal();  // what is compiled from here on would keep a request waiting

    Checker checker(options.seed);
    const Yardstick before = machine->measure();
    const LoopResult result = run_loop(options, kernels, layers, machine->memory(), checker);
    const Yardstick after = machine->measure();
    std::printf("%lld sequences, %lld finished\n\n", static_cast<long long>(result.sequences),
                static_cast<long long>(result.finished));
    const bool slower = after.bytes_a_second < before.bytes_a_second;
    print_tallies(result.decode_only, result.mixed, layers, slower ? before : after);
    const bool none_late = print_late_compiles(kernels.engine);
    return checker.print_verdict() && none_late ? 0 : 1;
}

}  // namespace
}  // namespace demo

int main(int argc, char** argv) try {
    const demo::Options options = demo::parse_options(argc, argv);
    if (options.help) {
        std::fputs(demo::kHelp, stdout);
        return 0;
    }
    return demo::run(options);
} catch (const std::exception& failure) {
    std::fprintf(stderr, "kvjit_demo: %s\n", failure.what());
    return 2;
}

// An engine's step loop on kvjit: `kvjit_demo --help`. step_runner.cc is where kvjit is used.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "engine_loop.h"
#include "machine.h"
#include "terminal.h"

namespace demo {
namespace {

/// Triple and processor; features beyond that are only counted.
std::string short_text(const kvjit::Target& target) {
    const std::string text = target.text();
    const std::string known = text.substr(0, text.find(':', text.find(':') + 1));
    const auto more = std::count(known.begin(), known.end(), '+');
    return known.substr(0, known.find('+')) + (more == 0 ? "" : " and " + std::to_string(more) + " features more");
}

void print_head(const Options& options, const Machine& machine, const kvjit::Target& target, std::int64_t layers) {
    std::printf("%s %s\n", bold("Machine").c_str(), machine.headline().c_str());
    std::printf("%s  %s\n", bold("Target").c_str(), short_text(target).c_str());
    std::printf("%s   Llama 3 8B's attention, %s, %lld MB of int8 cache\n", bold("Model").c_str(),
                Shape::part(layers).c_str(), static_cast<long long>(cache_bytes(options, layers) >> 20));
    if (layers < options.layers) std::printf("        (for %d layers there is too little memory)\n", options.layers);
    for (const kvjit_op op : {KVJIT_OP_KEY_VALUE_CACHE, KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION}) {
        std::printf("%s    %s\n", bold("Spec").c_str(), Shape::spec(op).text().value().c_str());
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
    const LoopResult result = run_loop(options, kernels, layers, *machine, checker);
    std::printf("%s %d, with %lld sequences, %lld of them finished; attention alone, and nothing else of the model\n",
                bold("Steps").c_str(), options.steps, static_cast<long long>(result.sequences),
                static_cast<long long>(result.finished));
    print_tallies(result.decode_only, result.mixed,
                  {layers, machine->explanation(), options.place == Place::kCpu, result.peer});
    const bool right = checker.print_verdict(kernels.engine.stats().late_compiles);
    std::printf("\n%s\n%s", bold("Try next").c_str(), kNext);
    return right ? 0 : 1;
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

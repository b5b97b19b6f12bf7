#include <benchmark/benchmark.h>

#include "setup.h"

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::AddCustomContext("kvjit_threads", std::to_string(kvjit::bench::thread_count()));
    if (const auto target = kvjit::Target::host()) benchmark::AddCustomContext("kvjit_target", target->text());
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}

#include <benchmark/benchmark.h>

#include <string>

#include "setup.h"

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::AddCustomContext("kvjit_threads", std::to_string(kvjit::bench::thread_count()));
    const std::string target = kvjit::Target::host()->text();
    benchmark::AddCustomContext("kvjit_target", target.substr(0, target.find(":+")));
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}

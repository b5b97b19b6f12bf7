// What having the programs ready costs: compiled, found on disk by a second start of the engine, or out of a bundle.
#pragma once

#include <string>
#include <vector>

#include "kvjit/kvjit.hpp"
#include "options.h"

namespace demo {

/// A folder in the system's place for temporary ones, removed with what is in it.
class TemporaryFolder {
public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

/// An engine with its kernels: one that only stores, one that stores and attends.
struct Kernels {
    kvjit::Engine engine;
    kvjit::Kernel store;
    kvjit::Kernel attention;
};

/// Of an engine that keeps in the folder what it compiles.
Kernels open_kernels(const std::string& cache_folder, const kvjit::Target& target);
/// Of an engine that compiles nothing and has what the bundle has.
Kernels open_bundle(const std::string& bundle, const kvjit::Target& target);

/// Seconds that each program took: made by the compiler, found on disk or in a bundle.
struct ProgramTimes {
    std::vector<double> each;
    double compiler_loading;  // opening the compiler's library: once a process
};

/// Prepares the programs one after the other. Compiles those that neither the engine's cache folder nor a bundle has.
ProgramTimes prepare_each(const Kernels& kernels, Place place);

void print_programs(const ProgramTimes& cold, const ProgramTimes& warm, Place place);
void print_programs(const ProgramTimes& bundled, Place place);

}  // namespace demo

// What compiling costs, and what a second start of the engine costs when the programs lie on disk.
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

Kernels open_kernels(const std::string& cache_folder, const kvjit::Target& target);

/// Seconds that each program took: made by the compiler, or found on disk.
struct ProgramTimes {
    std::vector<double> each;
    double compiler_loading;  // opening the compiler's library: once a process
};

/// Prepares the programs one after the other. Compiles them where the engine's cache folder doesn't hold them.
ProgramTimes prepare_each(const Kernels& kernels, Place place);

void print_programs(const ProgramTimes& cold, const ProgramTimes& warm, Place place);

}  // namespace demo

// The report of ptxas on each kernel, as numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvjit::rt {

/// One entry of a cubin. Bytes are per thread; of shared memory per block, static only. -1: the log doesn't say.
struct EntryReport {
    std::string entry;
    int registers = -1;
    int stack_bytes = -1;
    int spill_store_bytes = -1;
    int spill_load_bytes = -1;
    int shared_bytes = 0;  // reported only if there is any
};

/// The entries in a compile's log (CompileOutput::log), in its order. Other lines, such as warnings, are skipped.
std::vector<EntryReport> parse_compile_report(std::string_view log);

/// The log without its lines of times, which differ from compile to compile, and without empty lines.
std::string without_times(std::string_view log);

}  // namespace kvjit::rt

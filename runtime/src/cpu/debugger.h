// Tells gdb and perf about loaded programs.
//
// gdb: every image is announced through gdb's JIT interface, always: it costs one copy of the object and a list node,
// and backtraces, breakpoints and template lines then work without a switch. The interface's two symbols stay hidden,
// so that they can't meet another LLVM's: gdb finds them in this library's symbol table, hence not after `strip`.
// perf: with KVJIT_PERF=1 in the environment each function is appended to /tmp/perf-PID.map, where perf looks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kvjit::rt {

/// Where the parts of an object came to lie.
struct LoadedFunction {
    std::string name;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
};
struct LoadedLayout {
    std::map<std::string, std::uint64_t, std::less<>> sections;  // name -> address
    std::vector<LoadedFunction> functions;
};

/// Known to gdb while it lives.
class DebuggerEntry {
public:
    /// `object`: the ELF object that was linked; its section headers get the addresses of `layout`. Thread-safe.
    DebuggerEntry(std::string object, const LoadedLayout& layout);
    ~DebuggerEntry();
    DebuggerEntry(const DebuggerEntry&) = delete;
    DebuggerEntry& operator=(const DebuggerEntry&) = delete;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// The object, with the addresses of its sections filled in, whose code is loaded at `address`; empty if none is.
/// Thread-safe.
std::string find_loaded_object(std::uint64_t address);

/// Appends the functions as "name:function" to perf's map if KVJIT_PERF is 1; best effort. Thread-safe.
void announce_to_perf(const LoadedLayout& layout, const std::string& name);

}  // namespace kvjit::rt

// Intel's JIT profiling interface, by which VTune learns of code that is loaded. VTune names a library in a variable;
// it is opened at run time, so that building needs nothing of Intel's.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

namespace kvjit::rt {

/// A function's machine code, as the interface has it.
struct JitMethod {
    /// The code from the entry before's end (the first: from the function's begin) up to `end` is of this line.
    struct Line {
        std::uint32_t end, number;
    };
    std::uint32_t id = 0;  // never 0; see JitCollector
    std::string name;
    std::string file;  // empty: unknown
    const void* address = nullptr;
    std::uint32_t bytes = 0;
    std::vector<Line> lines;
};

/// The library. Functions are told one at a time.
class JitCollector {
public:
    /// The process's, opened at the first call and never closed. Null where $INTEL_JIT_PROFILER64 names none. Errors:
    /// why the one that it names can't be used, as a sentence.
    static const std::expected<const JitCollector*, std::string>& get();

    /// Gives the method its id, and tells of it: call this before its code runs.
    void tell_loaded(JitMethod& method) const;
    /// Call this while its code is still there.
    void tell_unloaded(const JitMethod& method) const;

private:
    using Notify = unsigned (*)(unsigned event, void* data);
    explicit JitCollector(Notify notify) : notify_(notify) {}
    static std::expected<const JitCollector*, std::string> open();
    void tell(unsigned event, const JitMethod& method) const;

    Notify notify_;
};

}  // namespace kvjit::rt

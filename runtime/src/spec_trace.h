// The kernels that a running program requests, as a list of specs.
#pragma once

#include <atomic>
#include <string>

#include "generator/program.h"
#include "log.h"

namespace kvjit::rt {

/// The name that kvjit_target_create, and the command's --target, accept.
std::string target_option(const gen::Target& target);

/// Lines of a file to which any number of engines and processes append. After a failed write, which is logged, nothing
/// more is written. Thread-safe.
class SpecTrace {
public:
    SpecTrace(std::string path, Log log);
    ~SpecTrace();
    SpecTrace(const SpecTrace&) = delete;
    SpecTrace& operator=(const SpecTrace&) = delete;

    /// Appends "op=MultiHeadCacheAttention,head_dim=64  # target=x86-64-v3 program=store", unless this process, or the
    /// one that it was forked from, has done so.
    void add(const gen::KernelSpec& spec, const gen::Target& target, const gen::ProgramInfo& program);

private:
    /// Returns "" or why not.
    std::string write_once(const std::string& line);
    void give_up(const std::string& why);

    std::string path_;
    Log log_;
    int file_;
    std::atomic<bool> gave_up_{false};
};

}  // namespace kvjit::rt

// What a running program asks for, as a list of specs.
#pragma once

#include <atomic>
#include <string>

#include "generator/program.h"
#include "log.h"

namespace kvjit::rt {

/// Lines of a file that any number of engines and processes append to. What can't be written is said once, and then no
/// more is tried. Thread-safe.
class SpecTrace {
public:
    SpecTrace(std::string path, Log log);
    ~SpecTrace();
    SpecTrace(const SpecTrace&) = delete;
    SpecTrace& operator=(const SpecTrace&) = delete;

    /// Appends "op=MultiHeadCacheAttention,head_dim=64  # target=x86-64-v3 program=store", unless this process has, or
    /// the one that it was forked from.
    void add(const gen::KernelSpec& spec, const gen::Target& target, const gen::ProgramInfo& program);

private:
    /// 0 or an errno.
    int write_once(const std::string& line);
    void give_up(int error);

    std::string path_;
    Log log_;
    int file_;
    std::atomic<bool> gave_up_{false};
};

}  // namespace kvjit::rt

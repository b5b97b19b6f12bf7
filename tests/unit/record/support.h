// Calls that are recorded, and their files.
#pragma once

#include <doctest/doctest.h>

#include <mutex>
#include <string>
#include <vector>

#include "call/call.h"
#include "kvjit/kvjit.hpp"
#include "recording/recording.h"
#include "support/temporary_folder.h"

namespace kvjit::test {

/// What an engine's log has heard. The log is called on several threads at once; the lists are read when these are
/// done.
class Heard {
public:
    void operator()(kvjit_log_level level, const char* message) {
        const std::lock_guard lock(mutex_);
        (level == KVJIT_LOG_WARNING ? warnings : notes).emplace_back(message);
    }

    std::vector<std::string> warnings, notes;

private:
    std::mutex mutex_;
};

/// An engine of this machine's kernels that records to a new folder, or as `record` says.
class RecordingEngine {
public:
    explicit RecordingEngine(const std::string& filter = "");

    Heard& heard() { return heard_; }
    const Engine& engine() const { return engine_; }
    const TemporaryFolder& folder() const { return folder_; }
    std::string calls() const { return folder_.path("calls"); }
    /// In the order in which they were written.
    std::vector<std::string> files() const;

    /// Plans and runs a call; throws what was refused.
    void run(const ApiCall& call, const PlanOptions& options = {}, std::int64_t layer = 0);
    void run(const ApiCall& call, const Kernel& kernel, const PlanOptions& options = {}, std::int64_t layer = 0);

private:
    TemporaryFolder folder_;
    Heard heard_;
    Engine engine_;
};

/// The file's only recording; the test fails where it can't be read.
tool::Recording read(const std::string& file);

/// A call of a spec with ragged sequences on random slots of a cache of which it needs less than half; `layers` in it.
ApiCall scattered_call(const std::string& spec, std::uint64_t seed, std::int64_t layers = 1, std::int64_t spare = 1000);

}  // namespace kvjit::test

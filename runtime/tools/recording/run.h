// Runs a recorded call through the public API.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "handles.h"
#include "machine.h"
#include "recording/recording.h"

namespace kvjit::tool {

/// What a call wrote, by the names of kvjit_tensors, `blocks` and `scale_blocks`: results, and the cache afterwards.
using Results = std::map<std::string, Tensor>;

/// A recorded call, planned on a machine. The recording and the machine outlive it.
class RecordedRun {
public:
    /// Results start as NaN, so that what isn't written shows. Errors: kvjit refused the call, as a sentence.
    static Result<RecordedRun> make(const Machine& machine, const Recording& recording);
    RecordedRun(RecordedRun&&) noexcept;
    ~RecordedRun();

    /// Runs the call; on a GPU it is under way then. Errors: kvjit refused it, or the emulator stopped it.
    RunResult<void> start() const;
    /// Waits for what was started. Errors: it went wrong.
    RunResult<void> finish() const;
    /// Precondition: the machine has no place of its own for tensors.
    Results results() const;

private:
    class Call;
    RecordedRun(Kernel kernel, std::unique_ptr<Call> call);

    Kernel kernel_;
    std::unique_ptr<Call> call_;
    Plan plan_;
};

/// Makes a run, runs it once and takes its results.
RunResult<Results> run_recording(const Machine& machine, const Recording& recording);

}  // namespace kvjit::tool

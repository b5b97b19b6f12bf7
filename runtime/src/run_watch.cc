#include "run_watch.h"

#include "spec_trace.h"

namespace kvjit::rt {

LogLine line_about(std::string_view event, const Kernel& kernel) {
    LogLine line(event);
    line.add("spec", gen::print_spec(kernel.spec())).add("target", target_option(kernel.target()));
    return line;
}

void PlanWatch::tell(const Plan& plan, std::int64_t sequences) const {
    if (!kernel_.log().takes(KVJIT_LOG_DEBUG)) return;
    LogLine line = line_about("planned", kernel_);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start_;
    line.add("sequences", sequences).add_ms(taken.count()).add("workspace_bytes", plan.workspace_bytes());
    kernel_.log()(KVJIT_LOG_DEBUG, line.text());
}

RunWatch::RunWatch(KernelPtr kernel, const Plan& plan, const kvjit_batch* host) {
    if (kernel->counts_runs()) work_ = plan.work(host);
    if (kernel->counts_runs() || kernel->log().takes(KVJIT_LOG_TRACE)) kernel_ = std::move(kernel);
}

void RunWatch::note(const kvjit_tensors* tensors, std::int64_t layer_idx, const gen::Result<void>& done,
                    std::chrono::nanoseconds taken) const {
    if (done && kernel_->counts_runs()) {
        const std::int64_t bytes =
            tensors == nullptr ? work_.stored + work_.read : work_.bytes(kernel_->spec(), *tensors);
        kernel_->run_counts().add(taken, bytes, work_.operations);
    }
    if (!kernel_->log().takes(KVJIT_LOG_TRACE)) return;
    LogLine line = line_about(done ? "ran" : "refused", *kernel_);
    line.add("layer", layer_idx).add_ms(std::chrono::duration<double>(taken).count());
    if (!done) line.add("why", done.error().message);
    kernel_->log()(KVJIT_LOG_TRACE, line.text());
}

}  // namespace kvjit::rt

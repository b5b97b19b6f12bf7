#include "run_watch.h"

#include "log.h"
#include "spec_trace.h"

namespace kvjit::rt {
namespace {

LogLine line_about(std::string_view event, const Kernel& kernel) {
    LogLine line(event);
    line.add("spec", gen::print_spec(kernel.spec())).add("target", target_option(kernel.target()));
    return line;
}

}  // namespace

void PlanWatch::tell(const Plan& plan, std::int64_t sequences) const {
    if (!kernel_.log().takes(KVJIT_LOG_DEBUG)) return;
    LogLine line = line_about("planned", kernel_);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start_;
    line.add("sequences", sequences).add_ms(taken.count()).add("workspace_bytes", plan.workspace_bytes());
    kernel_.log()(KVJIT_LOG_DEBUG, line.text());
}

RunWatch::RunWatch(KernelPtr kernel) {
    if (kernel->log().takes(KVJIT_LOG_TRACE)) kernel_ = std::move(kernel);
}

void RunWatch::tell(std::int64_t layer_idx, const gen::Result<void>& done, std::chrono::duration<double> taken) const {
    LogLine line = line_about(done ? "ran" : "refused", *kernel_);
    line.add("layer", layer_idx).add_ms(taken.count());
    if (!done) line.add("why", done.error().message);
    kernel_->log()(KVJIT_LOG_TRACE, line.text());
}

}  // namespace kvjit::rt

#include "spec_trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include "check/fault.h"

namespace kvjit::rt {
namespace {

/// Whether this process has not been here before with these.
bool is_first(const std::string& path, const std::string& line) {
    // Never destroyed: at the process's end, threads may still ask for kernels.
    static auto& mutex = *new std::mutex;
    static auto& lines = *new std::set<std::pair<std::string, std::string>>;
    const std::lock_guard lock(mutex);
    return lines.emplace(path, line).second;
}

/// As kvjit_target_create takes it.
std::string target_name(const gen::Target& target) {
    return target.backend == gen::Backend::kCudaEmulated ? "cuda-emulated" : target.name();
}

/// In one piece: then it stays one line, whoever else appends. 0 or an errno.
int append(int file, const std::string& line) {
    ssize_t written = 0;
    do written = write(file, line.data(), line.size());
    while (written < 0 && errno == EINTR);
    if (written < 0) return errno;
    return static_cast<std::size_t>(written) == line.size() ? 0 : ENOSPC;
}

}  // namespace

SpecTrace::SpecTrace(std::string path, Log log)
    : path_(std::move(path)),
      log_(std::move(log)),
      file_(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
    if (file_ < 0) give_up(errno);
}

SpecTrace::~SpecTrace() {
    if (file_ >= 0) close(file_);
}

void SpecTrace::add(const gen::KernelSpec& spec, const gen::Target& target, const gen::ProgramInfo& program) {
    if (gave_up_) return;
    const std::string line =
        text(gen::print_spec(spec), "  # target=", target_name(target), " program=", program.name, "\n");
    if (!is_first(path_, line)) return;
    if (const int error = append(file_, line)) give_up(error);
}

void SpecTrace::give_up(int error) {
    if (gave_up_.exchange(true)) return;
    log_(KVJIT_LOG_WARNING,
         text("specs are not traced: ", path_, " can't be written: ", std::generic_category().message(error)));
}

}  // namespace kvjit::rt

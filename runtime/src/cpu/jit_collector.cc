#include "cpu/jit_collector.h"

#include <dlfcn.h>

#include <atomic>
#include <optional>

#include "environment.h"

namespace kvjit::rt {
namespace {

// Names, numbers and layouts are those of "JIT Profiling API", Intel.
constexpr char kVariable[] = "INTEL_JIT_PROFILER64";
constexpr unsigned kSamplingOn = 1;                        // iJIT_SAMPLING_ON, what Initialize() returns
constexpr unsigned kLoadFinished = 13, kUnloadStart = 14;  // iJVM_EVENT_TYPE_METHOD_...

/// iJIT_Method_Load. The collector copies what it points to.
struct MethodLoad {
    unsigned id;
    const char* name;
    const void* address;
    unsigned bytes;
    unsigned line_count;
    const JitMethod::Line* lines;  // LineNumberInfo
    unsigned class_id;             // obsolete
    const char* class_name;
    const char* file;
};
static_assert(sizeof(MethodLoad) == 64 && sizeof(JitMethod::Line) == 8);

/// Ids are a process's, and other compilers in it count theirs from 1.
std::uint32_t next_id() {
    static std::atomic<std::uint32_t> last = 0x40000000;
    return ++last;
}

}  // namespace

std::expected<const JitCollector*, std::string> JitCollector::open() {
    const std::optional<std::string> path = environment_text(kVariable);
    if (!path || path->empty()) return nullptr;
    const auto refuse = [&](const std::string& why) {
        return std::unexpected(std::string(kVariable) + " is \"" + *path + "\", which can't be used: " + why +
                               "; no profiler is told of kernels");
    };
    void* library = dlopen(path->c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return refuse(dlerror());
    const auto initialise = reinterpret_cast<unsigned (*)()>(dlsym(library, "Initialize"));
    const auto notify = reinterpret_cast<Notify>(dlsym(library, "NotifyEvent"));
    if (initialise == nullptr || notify == nullptr) return refuse("it lacks the function Initialize or NotifyEvent");
    if (initialise() != kSamplingOn) return refuse("it doesn't collect now");
    return new JitCollector(notify);
}

const std::expected<const JitCollector*, std::string>& JitCollector::get() {
    static const auto collector = open();
    return collector;
}

void JitCollector::tell(unsigned event, const JitMethod& method) const {
    MethodLoad load{.id = method.id,
                    .name = method.name.c_str(),
                    .address = method.address,
                    .bytes = method.bytes,
                    .line_count = static_cast<unsigned>(method.lines.size()),
                    .lines = method.lines.data(),
                    .class_id = 0,
                    .class_name = nullptr,
                    .file = method.file.empty() ? nullptr : method.file.c_str()};
    notify_(event, &load);
}

void JitCollector::tell_loaded(JitMethod& method) const {
    method.id = next_id();
    tell(kLoadFinished, method);
}

void JitCollector::tell_unloaded(const JitMethod& method) const {
    tell(kUnloadStart, method);
}

}  // namespace kvjit::rt

#include "cpu/profilers.h"

#include <fcntl.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/Orc/Debugging/DebugInfoSupport.h>
#include <llvm/ExecutionEngine/Orc/Debugging/PerfSupportPlugin.h>
#include <llvm/ExecutionEngine/Orc/Shared/PerfSharedStructs.h>
#include <llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderPerf.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>

#include "cpu/collector_plugin.h"
#include "cpu/function_name.h"
#include "cpu/jit_collector.h"
#include "cpu/link_passes.h"
#include "environment.h"

namespace kvjit::rt {
namespace {

namespace fs = std::filesystem;
namespace jitlink = llvm::jitlink;
namespace orc = llvm::orc;
namespace shared = llvm::orc::shared;

std::string perf_line(const jitlink::Symbol& function, const std::string& program) {
    return llvm::utohexstr(function.getAddress().getValue(), true) + " " + llvm::utohexstr(function.getSize(), true) +
           " " + shown_name(program, function.getName().str()) + "\n";
}

// perf dictates the name, in a folder that others can write to: never follow a link there.
void append_to_map(const std::string& lines) {
    const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return;
    [[maybe_unused]] const ssize_t written = write(file, lines.data(), lines.size());  // one write: lines stay whole
    close(file);
}

llvm::Error announce(jitlink::LinkGraph& graph) {
    std::string lines;
    for (const jitlink::Symbol* symbol : graph.defined_symbols()) {
        if (symbol->hasName() && symbol->isCallable()) lines += perf_line(*symbol, graph.getName());
    }
    append_to_map(lines);
    return llvm::Error::success();
}

class PerfMap final : public PassesPlugin {
public:
    void modifyPassConfig(orc::MaterializationResponsibility&, jitlink::LinkGraph&,
                          jitlink::PassConfiguration& passes) override {
        passes.PostFixupPasses.push_back(announce);
    }
};

/// LLVM 19 leaves the flags in the file's header uninitialised, and perf refuses flags that it doesn't know.
void clear_flags(const fs::path& dump) {
    constexpr std::uint64_t kNoFlags = 0;
    constexpr off_t kFlagsAt = 32;
    const int file = open(dump.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return;
    [[maybe_unused]] const ssize_t written = pwrite(file, &kNoFlags, sizeof kNoFlags, kFlagsAt);
    close(file);
}

/// LLVM doesn't return the file's path, but has it open. Files that are closed meanwhile are skipped.
void mend_header() {
    const std::string name = "jit-" + std::to_string(getpid()) + ".dump";
    std::error_code error, unreadable;
    for (fs::directory_iterator file("/proc/self/fd", error), end; !error && file != end; file.increment(error)) {
        const fs::path path = fs::read_symlink(file->path(), unreadable);
        if (path.filename() == name) return clear_flags(path);
    }
}

using Arguments = shared::SPSArgList<shared::SPSPerfJITRecordBatch>;

void write_batch(const orc::PerfJITRecordBatch& batch) {
    std::string bytes(Arguments::size(batch), '\0');
    shared::SPSOutputBuffer buffer(bytes.data(), bytes.size());
    if (!Arguments::serialize(buffer, batch)) return;
    const shared::WrapperFunctionResult ignored(llvm_orc_registerJITLoaderPerfImpl(bytes.data(), bytes.size()));
}

/// perf takes a function's lines from the record right before its code. LLVM 19 writes the lines of all of an object's
/// functions before all of their code: here each function is a batch of its own.
void write_functions(const orc::PerfJITRecordBatch& batch) {
    for (const orc::PerfJITCodeLoadRecord& code : batch.CodeLoadRecords) {
        orc::PerfJITRecordBatch one;
        one.UnwindingRecord = batch.UnwindingRecord;  // none: its size is 0
        one.CodeLoadRecords = {code};
        std::ranges::copy_if(batch.DebugInfoRecords, std::back_inserter(one.DebugInfoRecords),
                             [&](const auto& lines) { return lines.CodeAddr == code.CodeAddr; });
        write_batch(one);
    }
}

/// Always reports success: ORC's plugin fails a link whose records can't be written.
shared::CWrapperFunctionResult write_records(const char* records, std::uint64_t bytes) {
    shared::SPSInputBuffer buffer(records, bytes);
    orc::PerfJITRecordBatch batch;
    if (Arguments::deserialize(buffer, batch)) write_functions(batch);
    mend_header();
    const auto all_well = [] { return llvm::Error::success(); };
    return shared::WrapperFunction<shared::SPSError()>::handle(nullptr, 0, all_well).release();
}

std::shared_ptr<orc::ObjectLinkingLayer::Plugin> make_jitdump(orc::ExecutionSession& session) {
    constexpr bool kLines = true;
    constexpr bool kUnwinding = false;  // kernels have no .eh_frame for it, and LLVM would print a message
    return std::make_shared<orc::PerfSupportPlugin>(session.getExecutorProcessControl(),
                                                    orc::ExecutorAddr::fromPtr(&llvm_orc_registerJITLoaderPerfStart),
                                                    orc::ExecutorAddr::fromPtr(&llvm_orc_registerJITLoaderPerfEnd),
                                                    orc::ExecutorAddr::fromPtr(&write_records), kLines, kUnwinding);
}

}  // namespace

void add_profilers(orc::ExecutionSession& session, orc::ObjectLinkingLayer& layer) {
    const JitCollector* collector = JitCollector::get().value_or(nullptr);
    if (collector) layer.addPlugin(make_collector_plugin(*collector));
    const std::optional<std::string> wanted = environment_text(Variable::kPerf);
    if (wanted == "1") layer.addPlugin(std::make_shared<PerfMap>());
    if (wanted == "jitdump") {
        layer.addPlugin(std::make_shared<orc::DebugInfoPreservationPlugin>());
        layer.addPlugin(make_jitdump(session));
    }
}

}  // namespace kvjit::rt

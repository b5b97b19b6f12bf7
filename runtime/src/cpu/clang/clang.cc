// libkvjit_compiler: Clang as a function. The only file that includes Clang's headers.
#include <clang/Basic/Diagnostic.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <pthread.h>

#include <mutex>

#include "plugin.h"

namespace {

constexpr unsigned kStackBytes = 8U << 20;  // what a main thread, which Clang is tuned for, usually has

void initialise_llvm() {
    static std::once_flag once;
    std::call_once(once, [] {
        llvm::InitializeAllTargetInfos();
        llvm::InitializeAllTargets();
        llvm::InitializeAllTargetMCs();
        llvm::InitializeAllAsmPrinters();
        llvm::InitializeAllAsmParsers();
    });
}

class Compilation {
public:
    explicit Compilation(const kvjit_clang_request& request) : request_(request), log_stream_(log_) {}

    int run() {
        initialise_llvm();
        bool done = parse_arguments() && execute() && check_symbols();
        request_.log(request_.context, log_.data(), log_.size());
        if (done) request_.output(request_.context, output_.data(), output_.size());
        return done ? 0 : 1;
    }

private:
    // The instance's own diagnostics engine must not exist before the invocation is set: -W flags would be ignored.
    bool parse_arguments() {
        llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options(new clang::DiagnosticOptions);
        clang::TextDiagnosticPrinter printer(log_stream_, options.get());
        clang::DiagnosticsEngine diagnostics(new clang::DiagnosticIDs, options, &printer, false);
        auto invocation = std::make_shared<clang::CompilerInvocation>();
        llvm::ArrayRef arguments(request_.arguments, request_.argument_count);
        if (!clang::CompilerInvocation::CreateFromArgs(*invocation, arguments, diagnostics)) return false;
        auto& inputs = invocation->getFrontendOpts().Inputs;
        inputs.assign(1, clang::FrontendInputFile(request_.name, clang::InputKind(clang::Language::CXX)));
        invocation->getCodeGenOpts().MainFileName = request_.name;
        instance_.setInvocation(std::move(invocation));
        return true;
    }

    bool execute() {
        instance_.createDiagnostics(new clang::TextDiagnosticPrinter(log_stream_, &instance_.getDiagnosticOpts()));
        instance_.setVerboseOutputStream(std::make_unique<llvm::raw_null_ostream>());
        // A file system with the source alone: what is compiled can't depend on the machine's files. (A bare buffer as
        // input would do, but sanitizers look for the main file's entry.)
        auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
        llvm::StringRef source(request_.source, request_.source_size);
        files->addFile(request_.name, 0, llvm::MemoryBuffer::getMemBufferCopy(source, request_.name));
        instance_.createFileManager(files);
        instance_.setOutputStream(std::make_unique<llvm::raw_svector_ostream>(output_));
        std::unique_ptr<clang::CodeGenAction> action = make_action(instance_.getFrontendOpts().ProgramAction);
        return action && instance_.ExecuteAction(*action);
    }

    std::unique_ptr<clang::CodeGenAction> make_action(clang::frontend::ActionKind kind) {
        switch (kind) {
            case clang::frontend::EmitObj:
                return std::make_unique<clang::EmitObjAction>();
            case clang::frontend::EmitLLVM:
                return std::make_unique<clang::EmitLLVMAction>();
            case clang::frontend::EmitAssembly:
                return std::make_unique<clang::EmitAssemblyAction>();
            default:
                log_stream_ << "error: no such product: -emit-obj, -emit-llvm and -S are\n";
                return nullptr;
        }
    }

    bool check_symbols() {
        if (instance_.getFrontendOpts().ProgramAction != clang::frontend::EmitObj) return true;
        llvm::StringRef bytes(output_.data(), output_.size());
        auto object = llvm::object::ObjectFile::createObjectFile({bytes, request_.name});
        if (!object) return report(object.takeError());
        bool complete = true;
        for (const llvm::object::SymbolRef& symbol : (*object)->symbols()) {
            llvm::Expected<uint32_t> flags = symbol.getFlags();
            if (!flags) return report(flags.takeError());
            if (!(*flags & llvm::object::SymbolRef::SF_Undefined)) continue;
            llvm::Expected<llvm::StringRef> name = symbol.getName();
            if (!name) return report(name.takeError());
            log_stream_ << "error: undefined symbol: " << *name << "\n";
            complete = false;
        }
        return complete;
    }

    bool report(llvm::Error error) {
        log_stream_ << "error: " << llvm::toString(std::move(error)) << "\n";
        return false;
    }

    const kvjit_clang_request& request_;
    std::string log_;
    llvm::raw_string_ostream log_stream_;
    llvm::SmallString<0> output_;
    clang::CompilerInstance instance_;
};

struct Job {
    const kvjit_clang_request& request;
    int status = 1;
};

void* run_job(void* job) {
    auto* self = static_cast<Job*>(job);
    self->status = Compilation(self->request).run();
    return nullptr;
}

// Not llvm::thread, which aborts where no thread can be had.
void run_on_large_stack(Job& job) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_t thread;
    bool started = pthread_create(&thread, &attributes, run_job, &job) == 0;
    pthread_attr_destroy(&attributes);
    if (started) {
        pthread_join(thread, nullptr);
    } else {
        run_job(&job);
    }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int kvjit_clang_compile_1(const kvjit_clang_request* request) {
    Job job{*request};
    run_on_large_stack(job);
    return job.status;
}

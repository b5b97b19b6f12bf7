// libkvjit_compiler: Clang as a function. The only folder that includes Clang's headers.
#include <clang/Basic/Diagnostic.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <pthread.h>

#include <mutex>

#include "code_generation.h"
#include "code_line.h"
#include "ir.h"
#include "passes.h"
#include "plugin.h"

namespace kvjit::rt {
namespace {

constexpr unsigned kStackBytes = 8U << 20;  // what a main thread, which Clang is tuned for, usually has

void initialise_llvm() {
    static std::once_flag once;
    std::call_once(once, [] {
        LLVMInitializeX86TargetInfo();
        LLVMInitializeX86Target();
        LLVMInitializeX86TargetMC();
        LLVMInitializeX86AsmPrinter();
        LLVMInitializeX86AsmParser();
    });
}

// Diagnostics of passes and code generation go to the log. LLVM's own handler would end the process at an error.
class LogHandler final : public llvm::DiagnosticHandler {
public:
    LogHandler(llvm::raw_ostream& log, bool& failed) : log_(log), failed_(failed) {}

    bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
        const llvm::DiagnosticSeverity severity = info.getSeverity();
        if (severity != llvm::DS_Error && severity != llvm::DS_Warning) return true;
        log_ << llvm::LLVMContext::getDiagnosticMessagePrefix(severity) << ": ";
        llvm::DiagnosticPrinterRawOStream printer(log_);
        info.print(printer);
        log_ << "\n";
        failed_ |= severity == llvm::DS_Error;
        return true;
    }

private:
    llvm::raw_ostream& log_;
    bool& failed_;
};

class Compilation {
public:
    explicit Compilation(const kvjit_clang_request& request) : request_(request), log_stream_(log_) {
        llvm::StringRef(request.passes, request.passes_size).split(passes_, ",-");
        context_.setDiagnosticHandler(std::make_unique<LogHandler>(log_stream_, failed_));
    }

    int run() {
        initialise_llvm();
        const bool done =
            parse_arguments() && make_ir() && make_machine() && optimise() && generate() && check_symbols();
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

    bool make_ir() {
        instance_.createDiagnostics(new clang::TextDiagnosticPrinter(log_stream_, &instance_.getDiagnosticOpts()));
        instance_.setVerboseOutputStream(std::make_unique<llvm::raw_null_ostream>());
        // A file system with the source alone: the result can't depend on the machine's files. (A bare buffer as input
        // would do, but sanitizers look for the main file's entry.)
        auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
        llvm::StringRef source(request_.source, request_.source_size);
        files->addFile(request_.name, 0, llvm::MemoryBuffer::getMemBufferCopy(source, request_.name));
        instance_.createFileManager(files);
        context_.setDiscardValueNames(instance_.getCodeGenOpts().DiscardValueNames);
        const bool readable = instance_.getFrontendOpts().ProgramAction == clang::frontend::EmitLLVM;
        IrAction action(context_, readable);
        if (!instance_.ExecuteAction(action)) return false;
        module_ = action.take_module();
        return module_ != nullptr;
    }

    bool make_machine() {
        std::string message;
        const clang::TargetOptions& target = instance_.getTargetOpts();
        const clang::CodeGenOptions& code = instance_.getCodeGenOpts();
        const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(target.Triple, message);
        if (!backend) return report(message);
        llvm::TargetOptions options;
        options.EmitStackSizeSection = code.StackSizeSection;
        options.MCOptions.AsmVerbose = code.AsmVerbose;
        const auto level = llvm::CodeGenOpt::getLevel(static_cast<int>(code.OptimizationLevel));
        machine_.reset(backend->createTargetMachine(target.Triple, target.CPU, llvm::join(target.Features, ","),
                                                    options, code.RelocationModel, std::nullopt, *level));
        return true;
    }

    bool optimise() {
        const bool sanitize_threads = instance_.getLangOpts().Sanitize.has(clang::SanitizerKind::Thread);
        llvm::Error error = run_passes(*module_, *machine_, passes_.front(), sanitize_threads);
        return error ? report(llvm::toString(std::move(error))) : !failed_;
    }

    bool generate() {
        llvm::raw_svector_ostream output(output_);
        const clang::frontend::ActionKind product = instance_.getFrontendOpts().ProgramAction;
        if (product == clang::frontend::EmitLLVM) {
            module_->print(output, nullptr);
            return true;
        }
        const bool is_object = product == clang::frontend::EmitObj;
        if (!is_object && product != clang::frontend::EmitAssembly)
            return report("no such product: -emit-obj, -emit-llvm and -S are");
        const auto type = is_object ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
        const llvm::ArrayRef left_out = llvm::ArrayRef(passes_).drop_front();
        llvm::Error error = generate_code(*module_, *machine_, left_out, type, output);
        return error ? report(llvm::toString(std::move(error))) : !failed_;
    }

    bool check_symbols() {
        if (instance_.getFrontendOpts().ProgramAction != clang::frontend::EmitObj) return true;
        llvm::StringRef bytes(output_.data(), output_.size());
        auto object = llvm::object::ObjectFile::createObjectFile({bytes, request_.name});
        if (!object) return report(llvm::toString(object.takeError()));
        bool complete = true;
        for (const llvm::object::SymbolRef& symbol : (*object)->symbols()) {
            llvm::Expected<uint32_t> flags = symbol.getFlags();
            if (!flags) return report(llvm::toString(flags.takeError()));
            if (!(*flags & llvm::object::SymbolRef::SF_Undefined)) continue;
            llvm::Expected<llvm::StringRef> name = symbol.getName();
            if (!name) return report(llvm::toString(name.takeError()));
            log_stream_ << "error: undefined symbol: " << *name << "\n";
            complete = false;
        }
        return complete;
    }

    bool report(const std::string& error) {
        log_stream_ << "error: " << error << "\n";
        return false;
    }

    const kvjit_clang_request& request_;
    llvm::SmallVector<llvm::StringRef> passes_;  // from Clang's IR on; then those that code generation leaves out
    std::string log_;
    llvm::raw_string_ostream log_stream_;
    llvm::SmallString<0> output_;
    bool failed_ = false;
    clang::CompilerInstance instance_;
    llvm::LLVMContext context_;
    std::unique_ptr<llvm::Module> module_;
    std::unique_ptr<llvm::TargetMachine> machine_;
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

// Not llvm::thread, which aborts where no thread can be created.
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

int compile(const kvjit_clang_request* request) {
    Job job{*request};
    run_on_large_stack(job);
    return job.status;
}

void find_line(const char* object, size_t size, uint64_t address, kvjit_clang_sink line, void* context) {
    const std::string found = code_line({object, size}, address);
    if (!found.empty()) line(context, found.data(), found.size());
}

}  // namespace
}  // namespace kvjit::rt

extern "C" __attribute__((visibility("default"))) const kvjit_clang_functions kvjit_clang_4 = {
    kvjit::rt::compile,
    kvjit::rt::find_line,
};

// libkvjit_compiler: Clang as a function. The only folder that includes Clang's headers.
#include <clang/Basic/Diagnostic.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <mutex>

#include "back_end.h"
#include "code_line.h"
#include "ir.h"
#include "large_stack.h"
#include "logged_context.h"
#include "plugin.h"

namespace kvjit::rt {
namespace {

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

class Compilation {
public:
    explicit Compilation(const kvjit_clang_request& request) : request_(request) {}

    int run() {
        initialise_llvm();
        const bool done = parse_arguments() && make_ir() && make_product() && check_symbols();
        request_.log(request_.context, context_.log().data(), context_.log().size());
        if (done) request_.output(request_.context, output_.data(), output_.size());
        return done ? 0 : 1;
    }

private:
    // The instance's own diagnostics engine must not exist before the invocation is set: -W flags would be ignored.
    bool parse_arguments() {
        llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options(new clang::DiagnosticOptions);
        clang::TextDiagnosticPrinter printer(context_.stream(), options.get());
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
        instance_.createDiagnostics(
            new clang::TextDiagnosticPrinter(context_.stream(), &instance_.getDiagnosticOpts()));
        instance_.setVerboseOutputStream(std::make_unique<llvm::raw_null_ostream>());
        // A file system with the source alone: the result can't depend on the machine's files. (A bare buffer as input
        // would do, but sanitizers look for the main file's entry.)
        auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
        llvm::StringRef source(request_.source, request_.source_size);
        files->addFile(request_.name, 0, llvm::MemoryBuffer::getMemBufferCopy(source, request_.name));
        instance_.createFileManager(files);
        context_.context().setDiscardValueNames(instance_.getCodeGenOpts().DiscardValueNames);
        const bool readable = instance_.getFrontendOpts().ProgramAction == clang::frontend::EmitLLVM;
        IrAction action(context_.context(), readable);
        if (!instance_.ExecuteAction(action)) return false;
        module_ = action.take_module();
        return module_ != nullptr;
    }

    bool make_product() {
        const clang::frontend::ActionKind action = instance_.getFrontendOpts().ProgramAction;
        using enum clang::frontend::ActionKind;
        if (action != EmitObj && action != EmitLLVM && action != EmitAssembly)
            return report("no such product: -emit-obj, -emit-llvm and -S are");
        const BackEnd back_end(instance_.getInvocation(), {request_.passes, request_.passes_size});
        BackEnd::Product product = back_end.run(*module_, context_);
        if (!product) return report(llvm::toString(product.takeError()));
        output_ = std::move(*product);
        return true;
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
            context_.stream() << "error: undefined symbol: " << *name << "\n";
            complete = false;
        }
        return complete;
    }

    bool report(const std::string& error) {
        context_.stream() << "error: " << error << "\n";
        return false;
    }

    const kvjit_clang_request& request_;
    llvm::SmallString<0> output_;
    LoggedContext context_;  // the instance's printers write to it
    clang::CompilerInstance instance_;
    std::unique_ptr<llvm::Module> module_;
};

int compile(const kvjit_clang_request* request) {
    int status = 1;
    LargeStackThread([&] { status = Compilation(*request).run(); }).wait();
    return status;
}

void find_line(const char* object, size_t size, uint64_t address, kvjit_clang_sink line, void* context) {
    const std::string found = code_line({object, size}, address);
    if (!found.empty()) line(context, found.data(), found.size());
}

}  // namespace
}  // namespace kvjit::rt

extern "C" __attribute__((visibility("default"))) const kvjit_clang_functions kvjit_clang_5 = {
    kvjit::rt::compile,
    kvjit::rt::find_line,
};

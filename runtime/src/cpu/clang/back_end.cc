#include "back_end.h"

#include <clang/Basic/TargetOptions.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>

#include "code_generation.h"
#include "passes.h"

namespace kvjit::rt {
namespace {

using Action = clang::frontend::ActionKind;

Action action_of(const clang::CompilerInvocation& invocation) {
    return invocation.getFrontendOpts().ProgramAction;
}

}  // namespace

BackEnd::BackEnd(const clang::CompilerInvocation& invocation, llvm::StringRef passes) : invocation_(invocation) {
    passes.split(left_out_, ",-");
    passes_ = left_out_.front();
    left_out_.erase(left_out_.begin());
}

BackEnd::Product BackEnd::run(llvm::Module& module, LoggedContext& context) const {
    auto machine = make_machine();
    if (!machine) return machine.takeError();
    return finish(module, **machine, context);
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>> BackEnd::make_machine() const {
    std::string message;
    const clang::TargetOptions& target = invocation_.getTargetOpts();
    const clang::CodeGenOptions& code = invocation_.getCodeGenOpts();
    const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(target.Triple, message);
    if (!backend) return llvm::createStringError(message);
    llvm::TargetOptions options;
    options.EmitStackSizeSection = code.StackSizeSection;
    options.MCOptions.AsmVerbose = code.AsmVerbose;
    const auto level = llvm::CodeGenOpt::getLevel(static_cast<int>(code.OptimizationLevel));
    return std::unique_ptr<llvm::TargetMachine>(
        backend->createTargetMachine(target.Triple, target.CPU, llvm::join(target.Features, ","), options,
                                     code.RelocationModel, std::nullopt, *level));
}

BackEnd::Product BackEnd::finish(llvm::Module& module, llvm::TargetMachine& machine,
                                 const LoggedContext& context) const {
    if (llvm::Error error = run_passes(module, machine, passes_, sanitizes_threads())) return error;
    llvm::SmallString<0> output;
    llvm::raw_svector_ostream stream(output);
    if (action_of(invocation_) == Action::EmitLLVM) {
        module.print(stream, nullptr);
        return output;
    }
    const auto type = makes_object() ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
    if (llvm::Error error = generate_code(module, machine, left_out_, type, stream)) return error;
    if (context.failed()) return llvm::createStringError("no code was generated");
    return output;
}

bool BackEnd::makes_object() const {
    return action_of(invocation_) == Action::EmitObj;
}

bool BackEnd::sanitizes_threads() const {
    return invocation_.getLangOpts().Sanitize.has(clang::SanitizerKind::Thread);
}

}  // namespace kvjit::rt

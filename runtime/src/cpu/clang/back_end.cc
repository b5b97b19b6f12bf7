#include "back_end.h"

#include <clang/Basic/TargetOptions.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>

#include <optional>
#include <tuple>
#include <utility>

#include "code_generation.h"
#include "joined_object.h"
#include "large_stack.h"
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
    std::tie(module_passes_, function_passes_) = left_out_.front().split(",halves,");
    left_out_.erase(left_out_.begin());
}

BackEnd::Product BackEnd::run(llvm::Module& module, LoggedContext& context) const {
    auto machine = make_machine();
    if (!machine) return machine.takeError();
    if (llvm::Error error = run_passes(module, **machine, module_passes_, false)) return error;
    if (context.failed()) return llvm::createStringError("a pass failed");
    OtherHalf half;
    if (makes_object() && !function_passes_.empty() && !sanitizes_threads()) half = split_module(module);
    if (half.functions.empty()) return finish(module, **machine, context);
    const bool discards_names = context.context().shouldDiscardValueNames();
    std::string log;
    std::optional<Product> second;
    LargeStackThread thread([&] { second.emplace(finish_other(half, discards_names, log)); });
    Product first = finish(module, **machine, context);
    thread.wait();
    context.stream() << log;
    if (!first || !*second) return llvm::joinErrors(first.takeError(), second->takeError());
    return join_objects(*first, **second);
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
    if (llvm::Error error = run_passes(module, machine, function_passes_, sanitizes_threads())) return error;
    if (context.failed()) return llvm::createStringError("a pass failed");
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

BackEnd::Product BackEnd::finish_other(const OtherHalf& half, bool discards_names, std::string& log) const {
    LoggedContext context;
    context.context().setDiscardValueNames(discards_names);
    auto module = read_half(half, context.context());
    if (!module) return module.takeError();
    auto machine = make_machine();
    if (!machine) return machine.takeError();
    Product product = finish(**module, **machine, context);
    log = context.log();
    return product;
}

bool BackEnd::makes_object() const {
    return action_of(invocation_) == Action::EmitObj;
}

/// ThreadSanitizer adds to a module what two must not both have.
bool BackEnd::sanitizes_threads() const {
    return invocation_.getLangOpts().Sanitize.has(clang::SanitizerKind::Thread);
}

}  // namespace kvjit::rt

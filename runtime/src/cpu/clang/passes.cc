#include "passes.h"

#include <llvm/Analysis/BranchProbabilityInfo.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/Instrumentation/ThreadSanitizer.h>

namespace kvjit::rt {
namespace {

// Takes the place of LLVM's estimate of how likely each branch is. The inliner has it made anew for each function that
// it changes, for frequencies that no pass of ours then looks at. An empty result: all branches of a block are alike.
struct EvenBranches : llvm::AnalysisInfoMixin<EvenBranches> {
    using Result = llvm::BranchProbabilityInfo;
    static llvm::AnalysisKey* ID() { return llvm::BranchProbabilityAnalysis::ID(); }
    static Result run(llvm::Function&, llvm::FunctionAnalysisManager&) { return {}; }
};

// Declared so that the modules' analyses are destroyed first, since they refer to the functions'.
struct Analyses {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;

    explicit Analyses(llvm::PassBuilder& builder) {
        functions.registerPass([] { return EvenBranches(); });  // before the builder's: the first one counts
        builder.registerModuleAnalyses(modules);
        builder.registerCGSCCAnalyses(components);
        builder.registerFunctionAnalyses(functions);
        builder.registerLoopAnalyses(loops);
        builder.crossRegisterProxies(loops, functions, components, modules);
    }
};

void add_thread_sanitizer(llvm::ModulePassManager& passes) {
    passes.addPass(llvm::ModuleThreadSanitizerPass());
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::ThreadSanitizerPass()));
}

}  // namespace

llvm::Error run_passes(llvm::Module& module, llvm::TargetMachine& machine, llvm::StringRef passes,
                       bool sanitize_threads) {
    llvm::PassBuilder builder(&machine);
    Analyses analyses(builder);
    llvm::ModulePassManager manager;
    if (!passes.empty()) {
        if (llvm::Error error = builder.parsePassPipeline(manager, passes)) return error;
    }
    if (sanitize_threads) add_thread_sanitizer(manager);
    manager.run(module, analyses.modules);
    return llvm::Error::success();
}

}  // namespace kvjit::rt

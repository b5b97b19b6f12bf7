#include "ir.h"

#include <clang/CodeGen/ModuleBuilder.h>
#include <clang/Frontend/CompilerInstance.h>

namespace kvjit::rt {
namespace {

// Functions always use 64-byte registers where the target has them (flags.h), so Clang's note of each function's vector
// width adds nothing; but LLVM builds a description of the processor for every value it finds.
void drop_vector_widths(llvm::Module& module) {
    for (llvm::Function& function : module) function.removeFnAttr("min-legal-vector-width");
}

}  // namespace

// All functions have the target's features. Unless the IR is the output, only the TargetMachine gets them: spelt out,
// they are a KiB of text that Clang sorts, and LLVM compares, for each of some 150 functions.
std::unique_ptr<clang::ASTConsumer> IrAction::CreateASTConsumer(clang::CompilerInstance& instance,
                                                                llvm::StringRef file) {
    if (!keep_features_) features_.swap(instance.getTargetOpts().Features);
    generator_ = clang::CreateLLVMCodeGen(instance.getDiagnostics(), file, &instance.getVirtualFileSystem(),
                                          instance.getHeaderSearchOpts(), instance.getPreprocessorOpts(),
                                          instance.getCodeGenOpts(), context_);
    return std::unique_ptr<clang::ASTConsumer>(generator_);
}

void IrAction::ExecuteAction() {
    clang::ASTFrontendAction::ExecuteAction();
    if (!keep_features_) features_.swap(getCompilerInstance().getTargetOpts().Features);
    module_.reset(generator_->ReleaseModule());
    if (module_) drop_vector_widths(*module_);
}

}  // namespace kvjit::rt

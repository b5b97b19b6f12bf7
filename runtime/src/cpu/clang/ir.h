// Clang's half of a compile: from source to LLVM's IR, before any pass.
#pragma once

#include <clang/Frontend/FrontendAction.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <string>
#include <vector>

namespace clang {
class CodeGenerator;
}

namespace kvjit::rt {

class IrAction final : public clang::ASTFrontendAction {
public:
    /// `keep_features`: each function lists the target's features that it uses, for IR that people read.
    IrAction(llvm::LLVMContext& context, bool keep_features) : context_(context), keep_features_(keep_features) {}

    /// The module, if the action has succeeded.
    std::unique_ptr<llvm::Module> take_module() { return std::move(module_); }

protected:
    std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& instance,
                                                          llvm::StringRef file) override;
    void ExecuteAction() override;

private:
    llvm::LLVMContext& context_;
    const bool keep_features_;
    clang::CodeGenerator* generator_ = nullptr;  // the instance's
    std::vector<std::string> features_;
    std::unique_ptr<llvm::Module> module_;
};

}  // namespace kvjit::rt

// Clang's half of a compile: a source to LLVM's IR, before any pass.
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
    explicit IrAction(llvm::LLVMContext& context) : context_(context) {}

    /// The module, if the action has succeeded.
    std::unique_ptr<llvm::Module> take_module() { return std::move(module_); }

protected:
    std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& instance,
                                                          llvm::StringRef file) override;
    void ExecuteAction() override;

private:
    llvm::LLVMContext& context_;
    clang::CodeGenerator* generator_ = nullptr;  // the instance's
    std::vector<std::string> features_;
    std::unique_ptr<llvm::Module> module_;
};

}  // namespace kvjit::rt

// From Clang's IR to what was asked for: passes, then code generation. Two threads share an object's functions.
#pragma once

#include <clang/Frontend/CompilerInvocation.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/Error.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "halves.h"
#include "logged_context.h"

namespace kvjit::rt {

class BackEnd {
public:
    using Product = llvm::Expected<llvm::SmallString<0>>;

    /// `passes`: see kvjit_clang_request. Both must outlive this.
    BackEnd(const clang::CompilerInvocation& invocation, llvm::StringRef passes);

    /// Of a module that lies in this context, whose log gets the diagnostics. The module is used up.
    Product run(llvm::Module& module, LoggedContext& context) const;

private:
    llvm::Expected<std::unique_ptr<llvm::TargetMachine>> make_machine() const;
    Product finish(llvm::Module& module, llvm::TargetMachine& machine, const LoggedContext& context) const;
    Product finish_other(const OtherHalf& half, bool discards_names, std::string& log) const;
    bool makes_object() const;
    bool sanitizes_threads() const;

    const clang::CompilerInvocation& invocation_;
    llvm::StringRef module_passes_, function_passes_;  // these run after those, and may run on two threads
    llvm::SmallVector<llvm::StringRef> left_out_;      // of code generation
};

}  // namespace kvjit::rt

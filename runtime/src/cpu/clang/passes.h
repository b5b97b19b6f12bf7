// LLVM's passes over a module, from Clang's IR to the input of code generation.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Support/Error.h>
#include <llvm/Target/TargetMachine.h>

namespace kvjit::rt {

/// `passes` in the language of opt -passes=; may be none. `sanitize_threads`: ThreadSanitizer's hooks follow, where
/// Clang has requested them (-fsanitize=thread). An error names the pass that LLVM doesn't know; the module is then
/// unchanged.
llvm::Error run_passes(llvm::Module& module, llvm::TargetMachine& machine, llvm::StringRef passes,
                       bool sanitize_threads);

}  // namespace kvjit::rt

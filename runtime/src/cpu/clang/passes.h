// LLVM's passes over a module, from Clang's IR to what code is generated from.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Support/Error.h>
#include <llvm/Target/TargetMachine.h>

namespace kvjit::rt {

/// `passes` in the language of opt -passes=. `sanitize_threads`: then ThreadSanitizer's hooks, where Clang has asked
/// for them (-fsanitize=thread). An error names the pass that LLVM doesn't know, and the module is as it was.
llvm::Error run_passes(llvm::Module& module, llvm::TargetMachine& machine, llvm::StringRef passes,
                       bool sanitize_threads);

}  // namespace kvjit::rt

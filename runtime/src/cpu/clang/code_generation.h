// LLVM's code generation, from optimised IR to an object or to assembly.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

namespace kvjit::rt {

/// `left_out`: passes that don't run, by their names in `llc -print-after=`. An error names one that code generation
/// doesn't have.
llvm::Error generate_code(llvm::Module& module, llvm::TargetMachine& machine, llvm::ArrayRef<llvm::StringRef> left_out,
                          llvm::CodeGenFileType type, llvm::raw_pwrite_stream& output);

}  // namespace kvjit::rt

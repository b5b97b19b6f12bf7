// A module's functions as two modules in two contexts, so that two threads may go on with them.
#pragma once

#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/StringSet.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/Error.h>

#include <memory>

namespace kvjit::rt {

/// The half of a module that another context takes over.
struct OtherHalf {
    llvm::StringSet<> functions;   // defined there
    llvm::SmallString<0> bitcode;  // of the whole module
};

/// Parts the functions into halves of about as many instructions, and leaves the bodies of one half in the module. All
/// functions become visible to other objects, since the halves call each other. Which half a function is in depends on
/// the module alone. If the module has too few instructions, or what there must not be twice, such as a variable, it is
/// left as it was, and no functions are returned.
OtherHalf split_module(llvm::Module& module);

/// The other half, in a context of its own.
llvm::Expected<std::unique_ptr<llvm::Module>> read_half(const OtherHalf& half, llvm::LLVMContext& context);

}  // namespace kvjit::rt

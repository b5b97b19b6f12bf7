#include "halves.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

namespace kvjit::rt {
namespace {

/// Instructions of a half for which a second thread is worth while: writing and reading a module takes as long as
/// making code of some hundred.
constexpr unsigned kLeastInstructions = 400;

bool can_be_split(const llvm::Module& module) {
    if (!module.alias_empty() || !module.ifunc_empty() || !module.getModuleInlineAsm().empty()) return false;
    return llvm::all_of(module.globals(), [](const llvm::GlobalVariable& global) {
        return global.isConstant() || global.getName().starts_with("llvm.");  // those are notes for LLVM
    });
}

/// The largest function first, each to the half that has less so far.
llvm::StringSet<> choose_half(const llvm::Module& module) {
    llvm::SmallVector<const llvm::Function*> functions;
    for (const llvm::Function& function : module) {
        if (!function.isDeclaration()) functions.push_back(&function);
    }
    const auto size = [](const llvm::Function* function) { return function->getInstructionCount(); };
    llvm::stable_sort(functions, [&](const auto* a, const auto* b) { return size(a) > size(b); });
    unsigned here = 0, there = 0;
    llvm::StringSet<> chosen;
    for (const llvm::Function* function : functions) {
        if (here <= there) {
            here += size(function);
        } else {
            there += size(function);
            chosen.insert(function->getName());
        }
    }
    return there >= kLeastInstructions ? chosen : llvm::StringSet<>();
}

/// A half may call what the other one defines: neither may leave out a function that it doesn't call itself. Both have
/// the constants; those whose addresses matter have one in the end.
void make_visible(llvm::Module& module) {
    for (llvm::Function& function : module) {
        if (function.isDeclarationForLinker() || !function.isDiscardableIfUnused()) continue;
        function.setComdat(nullptr);
        function.setLinkage(llvm::GlobalValue::ExternalLinkage);
        function.setVisibility(llvm::GlobalValue::HiddenVisibility);
    }
    for (llvm::GlobalVariable& global : module.globals()) {
        if (!global.hasLocalLinkage() || global.hasGlobalUnnamedAddr()) continue;
        global.setLinkage(llvm::GlobalValue::LinkOnceODRLinkage);
        global.setVisibility(llvm::GlobalValue::HiddenVisibility);
    }
}

/// Leaves the bodies of those functions that are in `names`, or of the others.
void keep_bodies(llvm::Module& module, const llvm::StringSet<>& names, bool named) {
    for (llvm::Function& function : module) {
        if (function.isDeclaration() || names.contains(function.getName()) == named) continue;
        function.deleteBody();
        function.setComdat(nullptr);
    }
}

}  // namespace

OtherHalf split_module(llvm::Module& module) {
    OtherHalf other;
    if (can_be_split(module)) other.functions = choose_half(module);
    if (other.functions.empty()) return other;
    make_visible(module);
    llvm::raw_svector_ostream stream(other.bitcode);
    constexpr bool kOrderOfUses = true;  // which code generation depends on
    llvm::WriteBitcodeToFile(module, stream, kOrderOfUses);
    keep_bodies(module, other.functions, false);
    return other;
}

llvm::Expected<std::unique_ptr<llvm::Module>> read_half(const OtherHalf& half, llvm::LLVMContext& context) {
    auto module = llvm::getLazyBitcodeModule({half.bitcode, "half"}, context);
    if (!module) return module;
    keep_bodies(**module, half.functions, true);
    if (llvm::Error error = (*module)->materializeAll()) return error;
    return module;
}

}  // namespace kvjit::rt

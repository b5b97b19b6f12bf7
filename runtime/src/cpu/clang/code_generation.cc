#include "code_generation.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Pass.h>
#include <llvm/PassInfo.h>
#include <llvm/PassRegistry.h>

namespace kvjit::rt {
namespace {

// LLVM's own switches for this are of the whole process, whose other users of LLVM they would reach, too.
class PassesWithout final : public llvm::legacy::PassManager {
public:
    explicit PassesWithout(llvm::ArrayRef<llvm::StringRef> left_out) {
        for (const llvm::StringRef name : left_out) left_out_[name] = false;
    }

    void add(llvm::Pass* pass) override {
        const llvm::PassInfo* info = llvm::PassRegistry::getPassRegistry()->getPassInfo(pass->getPassID());
        const auto found = info ? left_out_.find(info->getPassArgument()) : left_out_.end();
        if (found == left_out_.end()) return PassManager::add(pass);
        found->second = true;
        delete pass;  // the manager's by now, which deletes those that it doesn't need
    }

    llvm::Error check() const {
        for (const auto& [name, met] : left_out_) {
            if (!met) return llvm::createStringError("code generation has no pass '" + name + "' to leave out");
        }
        return llvm::Error::success();
    }

private:
    llvm::StringMap<bool> left_out_;  // whether a pass of that name was to be added
};

}  // namespace

llvm::Error generate_code(llvm::Module& module, llvm::TargetMachine& machine, llvm::ArrayRef<llvm::StringRef> left_out,
                          llvm::CodeGenFileType type, llvm::raw_pwrite_stream& output) {
    PassesWithout passes(left_out);
    if (machine.addPassesToEmitFile(passes, output, nullptr, type)) {
        return llvm::createStringError("the target emits no such file");
    }
    if (llvm::Error error = passes.check()) return error;
    passes.run(module);
    return llvm::Error::success();
}

}  // namespace kvjit::rt

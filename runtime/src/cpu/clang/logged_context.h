// A context of LLVM's whose diagnostics are text. LLVM's own handler would end the process at an error.
#pragma once

#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/raw_ostream.h>

#include <string>

namespace kvjit::rt {

class LoggedContext {
public:
    LoggedContext();

    llvm::LLVMContext& context() { return context_; }
    /// For more text. What was written is in log() at once.
    llvm::raw_ostream& stream() { return stream_; }
    const std::string& log() const { return log_; }
    /// Whether a diagnostic was an error.
    bool failed() const { return failed_; }

private:
    class Handler;

    std::string log_;
    llvm::raw_string_ostream stream_{log_};
    bool failed_ = false;
    llvm::LLVMContext context_;
};

}  // namespace kvjit::rt

#include "logged_context.h"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>

#include <memory>

namespace kvjit::rt {

class LoggedContext::Handler final : public llvm::DiagnosticHandler {
public:
    explicit Handler(LoggedContext& to) : to_(to) {}

    bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
        const llvm::DiagnosticSeverity severity = info.getSeverity();
        if (severity != llvm::DS_Error && severity != llvm::DS_Warning) return true;
        to_.stream_ << llvm::LLVMContext::getDiagnosticMessagePrefix(severity) << ": ";
        llvm::DiagnosticPrinterRawOStream printer(to_.stream_);
        info.print(printer);
        to_.stream_ << "\n";
        to_.failed_ |= severity == llvm::DS_Error;
        return true;
    }

private:
    LoggedContext& to_;
};

LoggedContext::LoggedContext() {
    context_.setDiagnosticHandler(std::make_unique<Handler>(*this));
}

}  // namespace kvjit::rt

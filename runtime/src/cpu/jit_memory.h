// The memory of loaded code, as LLVM's JITLink takes it, with or without ORC around.
#pragma once

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>

#include "generator/error.h"

namespace kvjit::rt {

/// Why memory was refused. Never the object's fault.
class JitMemoryError final : public llvm::ErrorInfo<JitMemoryError> {
public:
    static char ID;
    explicit JitMemoryError(gen::Error error) : error_(std::move(error)) {}
    /// KVJIT_OUT_OF_MEMORY or KVJIT_BAD_TARGET: see code_pages.h.
    const gen::Error& error() const { return error_; }
    void log(llvm::raw_ostream& out) const override { out << error_.message; }
    std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
    gen::Error error_;
};

/// One run of pages for each image that holds code, mapped in the way that the process may take (code_pages.h); what
/// holds none lies on the heap. It answers before its functions return, in the caller's thread. Errors: JitMemoryError,
/// or JITLinkError for an image too large to be one. Has no state: thread-safe, and images may outlive it.
class JitMemory final : public llvm::jitlink::JITLinkMemoryManager {
public:
    using JITLinkMemoryManager::allocate;
    using JITLinkMemoryManager::deallocate;
    void allocate(const llvm::jitlink::JITLinkDylib* library, llvm::jitlink::LinkGraph& graph,
                  OnAllocatedFunction on_allocated) override;
    void deallocate(std::vector<FinalizedAlloc> images, OnDeallocatedFunction on_deallocated) override;
};

}  // namespace kvjit::rt

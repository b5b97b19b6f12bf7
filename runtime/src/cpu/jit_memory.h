// The memory of loaded code, as LLVM's JITLink uses it, with or without ORC.
#pragma once

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>

#include "generator/error.h"

namespace kvjit::rt {

/// The reason why memory was refused. Never the object's fault.
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

/// One range of pages for each image with code, mapped in the way that works in this process (code_pages.h); images
/// without code lie on the heap. Completes before its functions return, in the caller's thread. Errors: JitMemoryError,
/// or JITLinkError for an image that is too large. Has no state: thread-safe, and images may outlive it.
class JitMemory final : public llvm::jitlink::JITLinkMemoryManager {
public:
    using JITLinkMemoryManager::allocate;
    using JITLinkMemoryManager::deallocate;
    void allocate(const llvm::jitlink::JITLinkDylib* library, llvm::jitlink::LinkGraph& graph,
                  OnAllocatedFunction on_allocated) override;
    void deallocate(std::vector<FinalizedAlloc> images, OnDeallocatedFunction on_deallocated) override;
};

}  // namespace kvjit::rt

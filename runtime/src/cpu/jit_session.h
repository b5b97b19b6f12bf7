// LLVM ORC's session, which turns objects into code of this process.
#pragma once

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "generator/error.h"

namespace kvjit::rt {

class JitSession;

/// An object's code, in memory for the lifetime of this.
class JitCode {
public:
    JitCode(JitSession& session, llvm::orc::JITDylib& library, void* entry)
        : session_(&session), library_(&library), entry_(entry) {}
    JitCode(JitCode&& other) noexcept
        : session_(other.session_), library_(std::exchange(other.library_, nullptr)), entry_(other.entry_) {}
    JitCode& operator=(JitCode&& other) noexcept {
        std::swap(session_, other.session_);
        std::swap(library_, other.library_);
        std::swap(entry_, other.entry_);
        return *this;
    }
    ~JitCode();
    void* entry() const { return entry_; }

private:
    JitSession* session_;
    llvm::orc::JITDylib* library_;  // holds the object and nothing else
    void* entry_;
};

/// Links an object, in the session that the process has for all of them. Errors: as load_object; std::bad_alloc.
/// Thread-safe.
gen::Result<JitCode> link_object(std::string_view object, std::string_view entry, const std::string& name);

}  // namespace kvjit::rt

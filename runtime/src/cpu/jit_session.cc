#include "cpu/jit_session.h"

#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/MemoryBuffer.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>

#include "cpu/debugger.h"
#include "cpu/jit_memory.h"
#include "cpu/link_passes.h"
#include "cpu/profilers.h"

namespace kvjit::rt {
namespace {

namespace orc = llvm::orc;

gen::Error bad_object(std::string why) {
    return {KVJIT_BAD_FILE, std::move(why), "object", 0, 0, -1};
}

/// The error is the object's fault, unless memory was refused.
gen::Error why(llvm::Error error) {
    std::optional<gen::Error> refused, other;
    llvm::handleAllErrors(
        std::move(error), [&](const JitMemoryError& one) { refused = one.error(); },
        [&](const llvm::ErrorInfoBase& one) { other = other.value_or(bad_object(one.message())); });
    return refused ? *refused : *other;
}

/// LLVM would end the process. Its code has no exception handlers: what it held is leaked.
void throw_bad_alloc(void*, const char*, bool) {
    throw std::bad_alloc();
}

bool make_llvm_throw() {
    llvm::install_bad_alloc_error_handler(throw_bad_alloc);
    return true;
}

/// This process as ORC's target. Every call completes before it returns, in the caller's thread.
std::unique_ptr<orc::ExecutorProcessControl> this_process() {
    [[maybe_unused]] static const bool throws = make_llvm_throw();
    return llvm::cantFail(orc::SelfExecutorProcessControl::Create(
        nullptr, std::make_unique<orc::InPlaceTaskDispatcher>(), std::make_unique<JitMemory>()));
}

/// LLVM's reader needs aligned bytes. Linking ends before the lifetime of the caller's bytes.
std::unique_ptr<llvm::MemoryBuffer> buffer_of(std::string_view object, const std::string& name) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(object.data()) % alignof(std::max_align_t) == 0;
    if (!aligned) return llvm::MemoryBuffer::getMemBufferCopy(object, name);
    return llvm::MemoryBuffer::getMemBuffer(object, name, false);
}

constinit std::mutex sessions_mutex;  // of all sessions and of what they hold

}  // namespace

/// One thread uses it at a time: ORC takes what is to be linked from a shared list, and reports failures to the session
/// alone.
///
/// An exception that has passed through ORC (out of memory) leaves its locks locked and its lists inconsistent: this
/// session is then abandoned, what it holds stays until the process ends, and the next image gets a new session.
class JitSession {
public:
    /// The process's. Never destroyed: an image may outlive statics.
    static JitSession& current() {
        static JitSession* session = nullptr;
        if (!session || session->broken_) session = new JitSession;
        return *session;
    }

    JitSession() : session_(this_process()), layer_(session_) {
        session_.setErrorReporter([this](llvm::Error error) { note(std::move(error)); });
        layer_.addPlugin(make_link_passes());
        layer_.addPlugin(make_debugger_plugin(session_));
        add_profilers(session_, layer_);
    }

    gen::Result<JitCode> link(std::string_view object, std::string_view entry, const std::string& name) {
        broken_ = true;  // unless this completes
        orc::JITDylib& library = session_.createBareJITDylib(name + " " + std::to_string(++libraries_));
        const gen::Result<void*> found = add(library, object, entry, name);
        if (!found) remove(library);
        broken_ = false;
        if (!found) return std::unexpected(found.error());
        return JitCode(*this, library, *found);
    }

    void unlink(orc::JITDylib& library) {
        if (broken_) return;
        broken_ = true;
        remove(library);
        broken_ = false;
    }

private:
    gen::Result<void*> add(orc::JITDylib& library, std::string_view object, std::string_view entry,
                           const std::string& name) {
        reported_.reset();
        if (llvm::Error error = layer_.add(library, buffer_of(object, name)))
            return std::unexpected(why(std::move(error)));
        auto symbol = session_.lookup({{&library, orc::JITDylibLookupFlags::MatchAllSymbols}}, session_.intern(entry));
        if (symbol && symbol->getFlags().isCallable()) return symbol->getAddress().toPtr<void*>();
        if (!symbol) llvm::consumeError(symbol.takeError());  // that linking failed, or found no symbol
        return std::unexpected(reported_.value_or(bad_object("no function named " + std::string(entry))));
    }

    // Unmapping mapped pages doesn't fail, and there would be no remedy.
    void remove(orc::JITDylib& library) { llvm::consumeError(session_.removeJITDylib(library)); }

    // ORC may report several consequences of one failure: the first one counts.
    void note(llvm::Error error) {
        gen::Error one = why(std::move(error));
        if (!reported_) reported_ = std::move(one);
    }

    orc::ExecutionSession session_;
    orc::ObjectLinkingLayer layer_;
    std::optional<gen::Error> reported_;  // the failure of the current link
    std::uint64_t libraries_ = 0;
    bool broken_ = false;
};

JitCode::~JitCode() {
    if (!library_) return;
    std::lock_guard lock(sessions_mutex);
    try {
        session_->unlink(*library_);
    } catch (const std::bad_alloc&) {
        return;  // its memory is not freed
    }
}

gen::Result<JitCode> link_object(std::string_view object, std::string_view entry, const std::string& name) {
    std::lock_guard lock(sessions_mutex);
    return JitSession::current().link(object, entry, name);
}

}  // namespace kvjit::rt

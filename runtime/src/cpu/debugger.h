// Tells gdb about loaded programs, always: backtraces, breakpoints and template lines then work without a switch.
//
// The two symbols of gdb's JIT interface stay hidden, so that they can't meet another LLVM's: gdb finds them in this
// library's symbol table, hence not after `strip`.
#pragma once

#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <memory>

namespace kvjit::rt {

/// ORC's plugin for gdb. It keeps a copy of each object, with the addresses of its sections, while its code is loaded;
/// loaded_objects.h finds it there.
std::shared_ptr<llvm::orc::ObjectLinkingLayer::Plugin> make_debugger_plugin(llvm::orc::ExecutionSession& session);

}  // namespace kvjit::rt

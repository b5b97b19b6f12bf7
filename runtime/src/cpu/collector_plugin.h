// Tells VTune, or whoever else collects by Intel's JIT profiling interface, about loaded programs.
#pragma once

#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <memory>

#include "cpu/jit_collector.h"

namespace kvjit::rt {

/// ORC's plugin for a collector. Of each function: its name as profilers show it, its address, the file that it is
/// written in and that file's lines; what was inlined belongs to the line that calls it. LLVM has such a plugin, of
/// which Debian's build lacks the part that opens the library.
std::shared_ptr<llvm::orc::ObjectLinkingLayer::Plugin> make_collector_plugin(const JitCollector& collector);

}  // namespace kvjit::rt

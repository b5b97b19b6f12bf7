// Tells profilers about loaded programs, as KVJIT_PERF asks for it.
#pragma once

#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

namespace kvjit::rt {

/// 1: each function is appended as "program:function" to /tmp/perf-PID.map, where perf looks.
/// jitdump: ORC's plugin for perf writes functions with their code and lines, for `perf inject --jit`.
/// Neither: nothing is added. Best effort: a profile that can't be written keeps no kernel from its work.
void add_profiler(llvm::orc::ExecutionSession& session, llvm::orc::ObjectLinkingLayer& layer);

}  // namespace kvjit::rt

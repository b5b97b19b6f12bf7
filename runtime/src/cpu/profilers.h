// Tells profilers about loaded programs, as KVJIT_PERF requests.
#pragma once

#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

namespace kvjit::rt {

/// 1: each function is appended as "program:function" to /tmp/perf-PID.map, where perf looks.
/// jitdump: ORC's plugin for perf writes functions with their code and lines, for `perf inject --jit`.
/// Otherwise adds nothing. Best effort: a profile that can't be written prevents no kernel from running.
void add_profiler(llvm::orc::ExecutionSession& session, llvm::orc::ObjectLinkingLayer& layer);

}  // namespace kvjit::rt

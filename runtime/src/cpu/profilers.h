// Tells profilers about loaded programs, as the environment requests.
#pragma once

#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

namespace kvjit::rt {

/// KVJIT_PERF=1: each function is appended as "program:function" to /tmp/perf-PID.map, where perf looks.
/// KVJIT_PERF=jitdump: ORC's plugin for perf writes functions with their code and lines, for `perf inject --jit`.
/// INTEL_JIT_PROFILER64: VTune's collector is told, see jit_collector.h.
/// Otherwise adds nothing. Best effort: a profile that can't be written prevents no kernel from running.
void add_profilers(llvm::orc::ExecutionSession& session, llvm::orc::ObjectLinkingLayer& layer);

}  // namespace kvjit::rt

// The functions that Clang calls on its own: for each load and store, under -fsanitize=thread, and for copies of
// structs. They are defined here, hidden, because a kernel may have no undefined symbol.
#pragma once

#include "cuda/machine/emulated/thread.h"

// The hooks themselves call no hook.
#pragma clang attribute push(__attribute__((disable_sanitizer_instrumentation)), apply_to = function)

#include "cpu/machine/prologue.h"

namespace kvjit::emulation {

[[gnu::always_inline]] inline Thread& this_thread() {
    const auto frame = reinterpret_cast<unsigned long>(__builtin_frame_address(0));
    return *reinterpret_cast<Thread*>((frame | (kStackBytes - 1)) + 1 - kThreadBytes);
}

/// Whether the address is on the thread's own stack, where nothing is shared: arrays that the optimiser left in memory.
[[gnu::always_inline]] inline bool on_own_stack(const void* address) {
    const auto frame = reinterpret_cast<unsigned long>(__builtin_frame_address(0));
    return ((reinterpret_cast<unsigned long>(address) ^ frame) & ~static_cast<unsigned long>(kStackBytes - 1)) == 0;
}

[[gnu::always_inline]] inline void note_access(const void* address, i64 bytes, AccessKind kind, const void* where) {
    if (on_own_stack(address)) return;
    Thread& self = this_thread();
    self.services->access(self, address, bytes, kind, where);
}

}  // namespace kvjit::emulation

#pragma GCC visibility push(hidden)
extern "C" {

#define KVJIT_HOOK(name, bytes, write, alignment)                                                       \
    [[gnu::used]] inline void name(void* address) {                                                     \
        kvjit::emulation::note_access(address, bytes, {write, alignment}, __builtin_return_address(0)); \
    }
// Clang calls the aligned hook of 16 bytes for addresses that are multiples of 8, too.
#define KVJIT_HOOKS(bytes)                                              \
    KVJIT_HOOK(__tsan_read##bytes, bytes, false, bytes < 8 ? bytes : 8) \
    KVJIT_HOOK(__tsan_write##bytes, bytes, true, bytes < 8 ? bytes : 8) \
    KVJIT_HOOK(__tsan_unaligned_read##bytes, bytes, false, 1)           \
    KVJIT_HOOK(__tsan_unaligned_write##bytes, bytes, true, 1)
KVJIT_HOOKS(1)
KVJIT_HOOKS(2)
KVJIT_HOOKS(4)
KVJIT_HOOKS(8)
KVJIT_HOOKS(16)
#undef KVJIT_HOOKS
#undef KVJIT_HOOK

// Called by the module's constructor, which never runs, and by functions: the emulator has no use for them.
[[gnu::used]] inline void __tsan_init() {}
[[gnu::used]] inline void __tsan_func_entry(void*) {}
[[gnu::used]] inline void __tsan_func_exit() {}

[[gnu::used]] inline void* __tsan_memset(void* to, int value, __SIZE_TYPE__ bytes) {
    kvjit::emulation::note_access(to, static_cast<long>(bytes), {true, 1}, __builtin_return_address(0));
    return memset(to, value, bytes);
}

[[gnu::used]] inline void* __tsan_memcpy(void* to, const void* from, __SIZE_TYPE__ bytes) {
    kvjit::emulation::note_access(from, static_cast<long>(bytes), {false, 1}, __builtin_return_address(0));
    kvjit::emulation::note_access(to, static_cast<long>(bytes), {true, 1}, __builtin_return_address(0));
    return memcpy(to, from, bytes);
}

// Clang may call this hook where a template moves memory, but nothing calls memmove: kernels have none.
[[gnu::used]] inline void* __tsan_memmove(void* to, const void* from, __SIZE_TYPE__ bytes) {
    kvjit::emulation::note_access(from, static_cast<long>(bytes), {false, 1}, __builtin_return_address(0));
    kvjit::emulation::note_access(to, static_cast<long>(bytes), {true, 1}, __builtin_return_address(0));
    char* p = static_cast<char*>(to);
    const char* q = static_cast<const char*>(from);
    if (p <= q) return memcpy(to, from, bytes);
    for (__SIZE_TYPE__ i = bytes; i > 0; --i) p[i - 1] = q[i - 1];
    return to;
}

}  // extern "C"
#pragma GCC visibility pop
#pragma clang attribute pop

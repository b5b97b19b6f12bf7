#include "emulation/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#ifndef __x86_64__
#error "Emulated CUDA kernels run on x86-64."
#endif

// What a call must preserve (System V ABI, "Registers"): six registers and the stack pointer. The control words of x87
// and SSE stay as they are, since no kernel changes them.
asm(R"(
    .text
    .p2align 4
    .globl kvjit_switch_fiber
    .hidden kvjit_switch_fiber
    .type kvjit_switch_fiber, @function
kvjit_switch_fiber:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size kvjit_switch_fiber, . - kvjit_switch_fiber
)");

// Saves the caller's registers on its stack and its stack pointer in `*from`, then goes on where `to` was saved.
extern "C" void kvjit_switch_fiber(void** from, void* to);

namespace kvjit::emulation {
namespace {

constexpr int kMaxStacks = 1024;  // threads of a block
constexpr int kSavedRegisters = 6;

char* stack_of(char* memory, int index) {
    return memory + index * kStackBytes;
}

}  // namespace

void switch_context(Context& from, Context& to) {
    to.sanitized.enter();
    kvjit_switch_fiber(&from.stack_pointer, to.stack_pointer);
}

Stacks::~Stacks() {
    for (int i = 0; i < ready_; ++i) (*this)[i].context.sanitized.forget();
    if (memory_) munmap(memory_, kMaxStacks * kStackBytes);
}

Fiber& Stacks::operator[](int index) const {
    return *reinterpret_cast<Fiber*>(stack_of(memory_, index + 1) - kThreadBytes);
}

bool Stacks::contains(const void* address) const {
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(memory_);
    return offset < static_cast<std::uintptr_t>(kMaxStacks * kStackBytes);
}

gen::Result<void> Stacks::reserve(int count, Multiprocessor& owner) {
    const auto fail = [] {
        return gen::fail(KVJIT_OUT_OF_MEMORY, "memory", "no memory for the stacks of emulated threads");
    };
    if (!memory_) {
        // Address space only; pages become real when they are touched. One stack more, to align the first.
        const std::size_t bytes = (kMaxStacks + 1) * kStackBytes;
        void* mapped = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) return fail();
        char* begin = static_cast<char*>(mapped);
        const std::size_t head = -reinterpret_cast<std::uintptr_t>(begin) & (kStackBytes - 1);
        if (head > 0) munmap(begin, head);
        munmap(begin + head + kMaxStacks * kStackBytes, kStackBytes - head);
        memory_ = begin + head;
    }
    const std::size_t guard = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    for (; ready_ < count; ++ready_) {
        if (mprotect(stack_of(memory_, ready_) + guard, kStackBytes - guard, PROT_READ | PROT_WRITE) != 0)
            return fail();
        (new (&(*this)[ready_]) Fiber)->owner = &owner;
    }
    return {};
}

void Stacks::prepare(Fiber& fiber, void (*entry)()) {
    // As kvjit_switch_fiber leaves a stack. A function starts 8 bytes off a multiple of 16: here is nothing above it.
    void** top = reinterpret_cast<void**>(&fiber) - 1;
    *--top = reinterpret_cast<void*>(entry);
    for (int i = 0; i < kSavedRegisters; ++i) *--top = nullptr;
    fiber.context.stack_pointer = top;
    const auto below = reinterpret_cast<char*>(top) - (reinterpret_cast<std::uintptr_t>(top) & (kStackBytes - 1));
    fiber.context.sanitized.start(below, static_cast<std::size_t>(reinterpret_cast<char*>(&fiber) - below));
}

}  // namespace kvjit::emulation

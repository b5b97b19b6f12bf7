// Has kvjit's LLVM in it, from libkvjit.a, and the shared libLLVM beside it: both compile, load and run, in turn.
#include <llvm-c/Core.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Target.h>

#include <cstdio>

#include "process/call.h"

namespace {

/// An error of LLVM's, told and gone. Whether there was one.
bool failed(LLVMErrorRef error) {
    if (error == nullptr) return false;
    char* message = LLVMGetErrorMessage(error);
    std::printf("LLVM: %s\n", message);
    LLVMDisposeErrorMessage(message);
    return true;
}

/// int answer() { return `value`; }
LLVMOrcThreadSafeModuleRef make_module(int value) {
    LLVMOrcThreadSafeContextRef context = LLVMOrcCreateNewThreadSafeContext();
    LLVMContextRef types = LLVMOrcThreadSafeContextGetContext(context);
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("answer", types);
    LLVMTypeRef integer = LLVMInt32TypeInContext(types);
    LLVMValueRef function = LLVMAddFunction(module, "answer", LLVMFunctionType(integer, nullptr, 0, 0));
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(types);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(types, function, ""));
    LLVMBuildRet(builder, LLVMConstInt(integer, static_cast<unsigned long long>(value), 0));
    LLVMDisposeBuilder(builder);
    LLVMOrcThreadSafeModuleRef safe = LLVMOrcCreateNewThreadSafeModule(module, context);
    LLVMOrcDisposeThreadSafeContext(context);
    return safe;
}

/// What libLLVM's own ORC makes of it; -1 after a failure.
int compiled_by_llvm(int value) {
    LLVMOrcLLJITRef jit = nullptr;
    if (failed(LLVMOrcCreateLLJIT(&jit, nullptr))) return -1;
    LLVMOrcExecutorAddress address = 0;
    if (failed(LLVMOrcLLJITAddLLVMIRModule(jit, LLVMOrcLLJITGetMainJITDylib(jit), make_module(value))) ||
        failed(LLVMOrcLLJITLookup(jit, &address, "answer"))) {
        return -1;
    }
    const int answer = reinterpret_cast<int (*)()>(address)();
    return failed(LLVMOrcDisposeLLJIT(jit)) ? -1 : answer;
}

}  // namespace

int main() {
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    for (int turn = 1; turn <= 2; ++turn) {
        std::printf("llvm %d\n", compiled_by_llvm(40 + turn));
        kvjit::EngineOptions options;
        options.cache_dir = "";  // compiled anew in each turn
        const auto kernel = kvjit::test::call_kernel(options);
        const kvjit::test::ApiCall call = kvjit::test::make_call(2, 1, 40);
        const auto done = kvjit::test::plan_and_run(*kernel, call);
        if (!done) return std::printf("kvjit %s\n", done.error().message()), 1;
        std::printf("kvjit %llu\n", static_cast<unsigned long long>(kvjit::test::output_hash(call)));
    }
}

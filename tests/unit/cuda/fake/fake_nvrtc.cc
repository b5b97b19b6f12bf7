// An NVRTC 12.8 that compiles nothing: its cubin says which architecture it was asked for, and its log all options.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

#include "elf_bytes.h"

#define KVJIT_FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kArchitectures[] = {80, 86, 87, 89, 90, 100, 101, 120};  // without families: they came with 12.9
constexpr int kInvalidOption = 5;

struct FakeProgram {
    std::string cubin, log;
};

bool is_known(std::string architecture) {
    if (architecture.ends_with('a')) architecture.pop_back();
    return std::ranges::any_of(kArchitectures,
                               [&](int number) { return "sm_" + std::to_string(number) == architecture; });
}

int give(const std::string& text, char* to) {
    std::ranges::copy(text, to);
    return 0;
}

}  // namespace

KVJIT_FAKE_EXPORT const char* nvrtcGetErrorString(int) {
    return "an error";
}
KVJIT_FAKE_EXPORT int nvrtcVersion(int* major, int* minor) {
    *major = 12, *minor = 8;
    return 0;
}
KVJIT_FAKE_EXPORT int nvrtcGetNumSupportedArchs(int* count) {
    *count = static_cast<int>(std::size(kArchitectures));
    return 0;
}
KVJIT_FAKE_EXPORT int nvrtcGetSupportedArchs(int* archs) {
    std::ranges::copy(kArchitectures, archs);
    return 0;
}
KVJIT_FAKE_EXPORT int nvrtcCreateProgram(FakeProgram** program, const char*, const char*, int, const char* const*,
                                         const char* const*) {
    *program = new FakeProgram;
    return 0;
}
KVJIT_FAKE_EXPORT int nvrtcDestroyProgram(FakeProgram** program) {
    delete *program;
    return 0;
}
KVJIT_FAKE_EXPORT int nvrtcCompileProgram(FakeProgram* program, int count, const char* const* options) {
    constexpr std::string_view kArchitecture = "--gpu-architecture=";
    for (int i = 0; i < count; ++i) {
        const std::string option = options[i];
        program->log += option + "\n";
        if (!option.starts_with(kArchitecture)) continue;
        const std::string architecture = option.substr(kArchitecture.size());
        if (!is_known(architecture)) return kInvalidOption;
        program->cubin = kvjit::test::cubin_of(architecture);
    }
    return 0;
}
KVJIT_FAKE_EXPORT int nvrtcGetProgramLogSize(FakeProgram* program, std::size_t* bytes) {
    *bytes = program->log.size();
    return 0;
}
KVJIT_FAKE_EXPORT int nvrtcGetProgramLog(FakeProgram* program, char* log) {
    return give(program->log, log);
}
KVJIT_FAKE_EXPORT int nvrtcGetCUBINSize(FakeProgram* program, std::size_t* bytes) {
    *bytes = program->cubin.size();
    return 0;
}
KVJIT_FAKE_EXPORT int nvrtcGetCUBIN(FakeProgram* program, char* cubin) {
    return give(program->cubin, cubin);
}
KVJIT_FAKE_EXPORT int nvrtcGetPTXSize(FakeProgram* program, std::size_t* bytes) {
    return nvrtcGetCUBINSize(program, bytes);
}
KVJIT_FAKE_EXPORT int nvrtcGetPTX(FakeProgram* program, char* ptx) {
    return nvrtcGetCUBIN(program, ptx);
}

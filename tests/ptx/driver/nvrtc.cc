// A stand-in for NVRTC: compiles by the real one, to PTX alone, and gives a file with that for a cubin. So kvjit's disk
// cache keeps PTX, and knows it from cubins of the real NVRTC by this file's build id. No machine code is made: that
// would take a third of the time, and nothing here runs it.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/dynamic_library.h"
#include "cuda/nvrtc_api.h"
#include "cuda/nvrtc_search.h"
#include "ptx/driver/elf_section.h"

#define KVJIT_PTX_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace kvjit;
using rt::nvrtc::Code;

constexpr const char* kLineInfo = "--generate-line-info";  // for errors that name a template's line
constexpr std::string_view kRealMachine = "--gpu-architecture=sm_", kVirtualMachine = "--gpu-architecture=compute_";
constexpr Code kInternalError{11};  // NVRTC_ERROR_INTERNAL_ERROR

/// The real one, where kvjit would look for it, KVJIT_NVRTC aside: that names this file.
std::vector<std::string> candidates() {
    std::vector<std::string> paths = rt::nvrtc_names(0);
    for (const std::string& folder : rt::nvrtc_folders()) {
        for (const std::string& name : rt::nvrtc_names(0)) paths.push_back(folder + "/" + name);
    }
    return paths;
}

gen::Result<rt::nvrtc::Api> open_real() {
    const std::vector<std::string> paths = candidates();
    const auto library = rt::DynamicLibrary::open(rt::kNvrtcText, paths);
    if (!library) return std::unexpected(library.error());
    rt::nvrtc::Api api{};
    if (auto filled = library->fill(api, rt::nvrtc::symbols()); !filled) return std::unexpected(filled.error());
    return api;
}

/// Null where there is none, which is said.
const rt::nvrtc::Api* real() {
    static const auto& api = *new gen::Result<rt::nvrtc::Api>(open_real());
    static const bool is_said = !api && std::fprintf(stderr, "%s\n", api.error().message.c_str()) > 0;
    return is_said || !api ? nullptr : &*api;
}

template <class... Parameters, class... Arguments>
Code forward(Code (*rt::nvrtc::Api::*function)(Parameters...), Arguments... arguments) {
    const rt::nvrtc::Api* api = real();
    return api == nullptr ? kInternalError : (api->*function)(arguments...);
}

Code make_cubin(rt::nvrtc::Program program, std::string& made) {
    std::size_t size = 0;
    Code code = forward(&rt::nvrtc::Api::get_ptx_size, program, &size);
    if (code != rt::nvrtc::kSuccess) return code;
    std::string ptx(size, '\0');
    code = forward(&rt::nvrtc::Api::get_ptx, program, ptx.data());
    while (ptx.ends_with('\0')) ptx.pop_back();
    made = ptx::file_of(ptx);
    return code;
}

/// The option that asks for PTX where `option` asks for machine code; else `option`.
std::string for_ptx(std::string_view option) {
    if (!option.starts_with(kRealMachine)) return std::string(option);
    return std::string(kVirtualMachine).append(option.substr(kRealMachine.size()));
}

}  // namespace

KVJIT_PTX_EXPORT const char* nvrtcGetErrorString(Code code) {
    return real() == nullptr ? "there is no NVRTC behind the stand-in" : real()->get_error_string(code);
}
KVJIT_PTX_EXPORT Code nvrtcVersion(int* major, int* minor) {
    return forward(&rt::nvrtc::Api::version, major, minor);
}
KVJIT_PTX_EXPORT Code nvrtcGetNumSupportedArchs(int* count) {
    return forward(&rt::nvrtc::Api::get_num_supported_archs, count);
}
KVJIT_PTX_EXPORT Code nvrtcGetSupportedArchs(int* archs) {
    return forward(&rt::nvrtc::Api::get_supported_archs, archs);
}
KVJIT_PTX_EXPORT Code nvrtcCreateProgram(rt::nvrtc::Program* program, const char* source, const char* name,
                                         int header_count, const char* const* headers,
                                         const char* const* include_names) {
    return forward(&rt::nvrtc::Api::create_program, program, source, name, header_count, headers, include_names);
}
KVJIT_PTX_EXPORT Code nvrtcDestroyProgram(rt::nvrtc::Program* program) {
    return forward(&rt::nvrtc::Api::destroy_program, program);
}
KVJIT_PTX_EXPORT Code nvrtcCompileProgram(rt::nvrtc::Program program, int count, const char* const* options) {
    std::vector<std::string> texts;
    for (const char* option : std::span(options, static_cast<std::size_t>(count))) texts.push_back(for_ptx(option));
    if (std::ranges::find(texts, kLineInfo) == texts.end()) texts.emplace_back(kLineInfo);
    std::vector<const char*> all;
    for (const std::string& option : texts) all.push_back(option.c_str());
    return forward(&rt::nvrtc::Api::compile_program, program, static_cast<int>(all.size()), all.data());
}
KVJIT_PTX_EXPORT Code nvrtcGetProgramLogSize(rt::nvrtc::Program program, std::size_t* bytes) {
    return forward(&rt::nvrtc::Api::get_program_log_size, program, bytes);
}
KVJIT_PTX_EXPORT Code nvrtcGetProgramLog(rt::nvrtc::Program program, char* log) {
    return forward(&rt::nvrtc::Api::get_program_log, program, log);
}
KVJIT_PTX_EXPORT Code nvrtcGetCUBINSize(rt::nvrtc::Program program, std::size_t* bytes) {
    std::string cubin;
    const Code code = make_cubin(program, cubin);
    *bytes = cubin.size();
    return code;
}
KVJIT_PTX_EXPORT Code nvrtcGetCUBIN(rt::nvrtc::Program program, char* to) {
    std::string cubin;
    const Code code = make_cubin(program, cubin);
    std::memcpy(to, cubin.data(), cubin.size());
    return code;
}
KVJIT_PTX_EXPORT Code nvrtcGetPTXSize(rt::nvrtc::Program program, std::size_t* bytes) {
    return forward(&rt::nvrtc::Api::get_ptx_size, program, bytes);
}
KVJIT_PTX_EXPORT Code nvrtcGetPTX(rt::nvrtc::Program program, char* ptx) {
    return forward(&rt::nvrtc::Api::get_ptx, program, ptx);
}

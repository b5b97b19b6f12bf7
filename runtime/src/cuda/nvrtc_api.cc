#include "cuda/nvrtc_api.h"

namespace kvjit::rt::nvrtc {
namespace {

constexpr Symbol<Api> kSymbols[] = {
    symbol<&Api::get_error_string>("nvrtcGetErrorString"),
    symbol<&Api::version>("nvrtcVersion"),
    symbol<&Api::get_num_supported_archs>("nvrtcGetNumSupportedArchs"),
    symbol<&Api::get_supported_archs>("nvrtcGetSupportedArchs"),
    symbol<&Api::create_program>("nvrtcCreateProgram"),
    symbol<&Api::destroy_program>("nvrtcDestroyProgram"),
    symbol<&Api::compile_program>("nvrtcCompileProgram"),
    symbol<&Api::get_program_log_size>("nvrtcGetProgramLogSize"),
    symbol<&Api::get_program_log>("nvrtcGetProgramLog"),
    symbol<&Api::get_cubin_size>("nvrtcGetCUBINSize"),
    symbol<&Api::get_cubin>("nvrtcGetCUBIN"),
    symbol<&Api::get_ptx_size>("nvrtcGetPTXSize"),
    symbol<&Api::get_ptx>("nvrtcGetPTX"),
};

}  // namespace

std::span<const Symbol<Api>> symbols() {
    return kSymbols;
}

}  // namespace kvjit::rt::nvrtc

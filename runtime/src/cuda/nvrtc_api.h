// The part of NVRTC that kvjit calls, declared here so that building needs no CUDA header. Names, values and signatures
// are those of "NVRTC", NVIDIA; tests/unit/cuda compares them with nvrtc.h where there is one.
#pragma once

#include <cstddef>
#include <span>

#include "cuda/dynamic_library.h"

namespace kvjit::rt::nvrtc {

using Program = struct ProgramTag*;

/// nvrtcResult: the values that kvjit distinguishes.
enum Code : int {
    kSuccess = 0,
    kOutOfMemory = 1,
    kInvalidOption = 5,
    kCompilation = 6,
    kBuiltinOperationFailure = 7,
};

/// One member for each function; the table in nvrtc_api.cc has the symbols.
struct Api {
    const char* (*get_error_string)(Code code);
    Code (*version)(int* major, int* minor);
    Code (*get_num_supported_archs)(int* count);
    Code (*get_supported_archs)(int* archs);
    Code (*create_program)(Program* program, const char* source, const char* name, int header_count,
                           const char* const* headers, const char* const* include_names);
    Code (*destroy_program)(Program* program);
    Code (*compile_program)(Program program, int option_count, const char* const* options);
    Code (*get_program_log_size)(Program program, std::size_t* bytes);
    Code (*get_program_log)(Program program, char* log);
    Code (*get_cubin_size)(Program program, std::size_t* bytes);
    Code (*get_cubin)(Program program, char* cubin);
    Code (*get_ptx_size)(Program program, std::size_t* bytes);
    Code (*get_ptx)(Program program, char* ptx);
};

std::span<const Symbol<Api>> symbols();

}  // namespace kvjit::rt::nvrtc

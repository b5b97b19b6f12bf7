// What the tests of the CPU backend share.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "cpu/clang_compiler.h"
#include "cpu/host.h"
#include "cpu/loader.h"
#include "support/read_file.h"

namespace kvjit::test {

/// The compiler that all tests share: libkvjit_compiler of this build.
rt::CpuCompiler& compiler();

/// sample_kernel.cc for a vector of that many bytes.
std::string sample_source(int vector_bytes);

/// What the compiler makes of `source`; a failure fails the test with its message.
std::string compile(std::string_view source, const gen::Target& target,
                    rt::CompileStage stage = rt::CompileStage::kObject);

/// "x86-64-v3" and the like.
gen::Target level(std::string_view name);

/// Compiled for this machine and loaded.
rt::ImagePtr load(std::string_view source, const std::string& entry);

template <class Function>
Function* as(const rt::ImagePtr& image) {
    return reinterpret_cast<Function*>(image->entry());
}

}  // namespace kvjit::test

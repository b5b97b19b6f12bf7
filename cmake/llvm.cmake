# LLVM 19, and Clang 19 for the compiler.
#   kvjit_orc    ORC over JITLink, with Object and TargetParser, static: their symbols stay inside whatever links them, so
#                that another LLVM in the process can't interfere, and a process that compiles nothing never maps libLLVM.
#   kvjit_clang  the shared libclang-cpp and libLLVM, for the compiler plugin alone; with KVJIT_CPU_COMPILER.
set(KVJIT_LLVM_APT "apt install llvm-19-dev libzstd-dev zlib1g-dev")
set(KVJIT_CLANG_APT "apt install libclang-19-dev libclang-cpp19-dev")

find_package(LLVM 19.1 CONFIG QUIET HINTS /usr/lib/llvm-19/lib/cmake/llvm)
if(NOT LLVM_FOUND)
  message(FATAL_ERROR "kvjit's CPU backend needs LLVM 19.1: ${KVJIT_LLVM_APT}, or pass -DLLVM_DIR=.../lib/cmake/llvm")
endif()
separate_arguments(KVJIT_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")

# The archives by name, in link order, instead of LLVM's CMake targets with all their dependencies: files that load code
# also hold ORC's IR layers and readers of archives and bitcode, so the targets would link LLVM's IR, assembler and
# passes, whose option tables are built whenever the library is loaded. Nothing calls that code: --gc-sections drops
# what refers to it, and with that the symbols that no archive here defines.
set(KVJIT_ORC_PARTS OrcDebugging OrcJIT RuntimeDyld DebugInfoDWARF JITLink OrcTargetProcess OrcShared Option Object
                    BinaryFormat TargetParser Support Demangle)
foreach(part ${KVJIT_ORC_PARTS})
  if(NOT TARGET LLVM${part})
    message(FATAL_ERROR "kvjit's CPU backend needs libLLVM${part}.a of LLVM ${LLVM_PACKAGE_VERSION}: ${KVJIT_LLVM_APT}")
  endif()
endforeach()
list(TRANSFORM KVJIT_ORC_PARTS REPLACE "(.+)" "libLLVM\\1.a" OUTPUT_VARIABLE KVJIT_LLVM_ARCHIVES)
list(JOIN KVJIT_LLVM_ARCHIVES ":" KVJIT_LLVM_ARCHIVES)
list(TRANSFORM KVJIT_ORC_PARTS REPLACE "(.+)" "$<TARGET_FILE:LLVM\\1>" OUTPUT_VARIABLE KVJIT_ORC_FILES)

add_library(kvjit_orc INTERFACE)
target_include_directories(kvjit_orc SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_compile_definitions(kvjit_orc INTERFACE ${KVJIT_LLVM_DEFINITIONS})
target_link_libraries(kvjit_orc INTERFACE ${KVJIT_ORC_FILES} ${KVJIT_LIBZ} ${KVJIT_LIBZSTD} ${CMAKE_DL_LIBS})
# By name: "ALL" would hide the exports of our own static libraries too.
target_link_options(kvjit_orc INTERFACE "LINKER:--exclude-libs,${KVJIT_LLVM_ARCHIVES}" LINKER:--gc-sections
                    LINKER:--as-needed)

if(NOT KVJIT_CPU_COMPILER)
  return()
endif()
find_library(KVJIT_LIBCLANG_CPP NAMES clang-cpp HINTS ${LLVM_LIBRARY_DIR} NO_DEFAULT_PATH)
find_library(KVJIT_LIBLLVM NAMES LLVM LLVM-19 HINTS ${LLVM_LIBRARY_DIR} NO_DEFAULT_PATH)
find_path(KVJIT_CLANG_INCLUDE clang/Frontend/CompilerInstance.h HINTS ${LLVM_INCLUDE_DIRS} NO_DEFAULT_PATH)
if(NOT KVJIT_LIBCLANG_CPP OR NOT KVJIT_LIBLLVM OR NOT KVJIT_CLANG_INCLUDE)
  message(FATAL_ERROR "kvjit's CPU compiler needs Clang 19's shared library and headers in ${LLVM_LIBRARY_DIR}: "
                      "${KVJIT_CLANG_APT}, or pass -DKVJIT_CPU_COMPILER=OFF to run kernels out of bundles alone")
endif()
mark_as_advanced(KVJIT_LIBCLANG_CPP KVJIT_LIBLLVM KVJIT_CLANG_INCLUDE)

add_library(kvjit_clang INTERFACE)
target_include_directories(kvjit_clang SYSTEM INTERFACE ${KVJIT_CLANG_INCLUDE} ${LLVM_INCLUDE_DIRS})
target_compile_definitions(kvjit_clang INTERFACE ${KVJIT_LLVM_DEFINITIONS})
target_link_libraries(kvjit_clang INTERFACE ${KVJIT_LIBCLANG_CPP} ${KVJIT_LIBLLVM})
